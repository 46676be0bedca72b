// Chapter 9. The loops: functions of the library, called as in training, and the triad.
#include "apps/measure/bench/loops.h"

#include <cmath>
#include <cstring>
#include <memory>

#include "apps/program/stopwatch.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/machine/vector.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "optim/adam.h"
#include "optim/sgd.h"

namespace orrery {
namespace {

constexpr double dropped = 0.1;
constexpr i64 heads = 8, sequence_length = 32;

// The backward pass of a single operation, for a given dL/dy, without the engine and other nodes.
Loop backward_loop(const std::string& name, double bytes, const std::vector<Variable>& leaves, const Tensor& dy,
                   const std::function<Variable()>& forward) {
  const auto y = std::make_shared<Variable>();
  return {.name = name,
          .bytes = bytes,
          .run =
              [y] {
                Grads dx(*y->node());
                y->node()->backward(dx);
              },
          .prepare =
              [=] {
                for (Variable leaf : leaves) leaf.clear_gradient();
                *y = forward();
                y->node()->outputs[0].gradient = dy;
              }};
}

// The loss and its derivative together, since an implementation may divide the work between them. About `numbers`
// logits.
Loop cross_entropy_loop(const std::string& name, i64 numbers, i64 classes) {
  Rng rng(1);
  const Tensor logits = rand_uniform({std::max<i64>(1, numbers / classes), classes}, -1, 1, rng);
  const Tensor targets = randint(0, classes, {logits.size(0)}, rng);
  return {.name = name, .bytes = 2.0 * static_cast<double>(logits.bytes()), .run = [=] {
            const Variable loss = cross_entropy(parameter(logits), targets, {.label_smoothing = 0.1});
            loss.node()->outputs[0].gradient = full({}, 1.0);
            Grads dx(*loss.node());
            loss.node()->backward(dx);
          }};
}

// One step of an optimiser over one parameter.
template <class Optimizer, class Options, class Step>
Loop optimizer_loop(const std::string& name, double bytes, const Tensor& start, const Tensor& gradient,
                    const Options& options, const Step& step) {
  Variable p = parameter(start.clone());
  const auto optimizer = std::make_shared<Optimizer>(std::vector<Variable>{p}, options);
  return {.name = name,
          .bytes = bytes,
          .run = [=] { step(*optimizer); },
          .prepare = [p, gradient]() mutable { p.mutable_gradient() = gradient; }};
}

Loop triad(const Tensor& b, const Tensor& c, double bytes) {
  return {.name = "triad a = b + s c", .bytes = bytes, .run = [=, a = Tensor::empty(b.shape())]() mutable {
            kernels::map<float>(b.count(), b.data<float>(), c.data<float>(), a.write<float>(),
                                [](float x, float y) { return x + 3.0F * y; });
          }};
}

// Sums in eight registers, so that the arithmetic takes less time than the memory. n must be a multiple of 8 lanes.
float sum_of(const float* x, i64 n) {
  using Vector = kernels::VectorOf<float>::type;
  constexpr i64 lanes = kernels::VectorOf<float>::lanes, registers = 8;
  Vector sum[registers] = {};
  for (i64 i = 0; i + registers * lanes <= n; i += registers * lanes) {
    for (i64 r = 0; r < registers; ++r) {
      Vector next;
      std::memcpy(&next, x + i + r * lanes, sizeof next);
      sum[r] += next;
    }
  }
  float total = 0;
  for (const Vector& part : sum)
    for (i64 k = 0; k < lanes; ++k) total += part[k];
  return total;
}

// Loops over arrays of one size, which is that of `dy`.
class LoopList {
 public:
  explicit LoopList(const Tensor& dy) : dy_(dy) {}
  double bytes_of(double arrays) const { return arrays * static_cast<double>(dy_.bytes()); }
  void add(const Loop& loop) { loops_.push_back(loop); }
  // A function that reads and writes this many arrays.
  void add(const std::string& name, double arrays, const std::function<void()>& run) {
    add({.name = name, .bytes = bytes_of(arrays), .run = run});
  }
  // The backward pass of `forward`, whose result has the shape of `dy`.
  void add_backward(const std::string& name, double arrays, const std::vector<Variable>& leaves,
                    const std::function<Variable()>& forward) {
    add(backward_loop(name, bytes_of(arrays), leaves, dy_, forward));
  }
  std::vector<Loop> take() { return std::move(loops_); }

 private:
  const Tensor dy_;
  std::vector<Loop> loops_;
};

// x and y are [rows, columns], weight and bias [columns].
struct Inputs {
  Variable x, y, weight, bias;
};

void add_moves(LoopList& list, const Tensor& a) {
  const i64 columns = a.size(1);
  const Tensor in_heads = a.reshape({-1, sequence_length, heads, columns / heads});
  list.add("copy", 2, [=] { a.clone(); });
  list.add("transposition", 2, [=] { permute(a, {1, 0}); });
  list.add("permutation into heads", 2, [=] { permute(in_heads, {0, 2, 1, 3}); });
}

void add_arithmetic(LoopList& list, const Tensor& a, const Tensor& b, const Tensor& row) {
  list.add("add", 3, [=] { add(a, b); });
  list.add("add a row (bias)", 2, [=] { add(a, row); });
  list.add("add in place", 3, [=, to = a.clone()]() mutable { add_in_place(to, b); });
  list.add("scale", 2, [=] { scale(a, 0.5); });
  list.add("sum of squares", 1, [=] { sum_of_squares(a); });
  list.add("column sums", 1, [=] { sum(a, {0}); });
  list.add("max of rows", 1, [=] { max(a, {-1}); });
  list.add("argmax of rows", 1, [=] { argmax(a); });
}

void add_activations(LoopList& list, const Variable& x, const Variable& leaf) {
  list.add("relu", 2, [=] { relu(x); });
  list.add_backward("relu, backward", 3, {leaf}, [=] { return relu(leaf); });
  list.add("tanh", 2, [=] { tanh(x); });
  list.add("silu", 2, [=] { silu(x); });
  list.add("gelu", 2, [=] { gelu(x); });
  list.add_backward("gelu, backward", 3, {leaf}, [=] { return gelu(leaf); });
}

// Softmax, layer norm, dropout and residual connections: forward of constants, backward of leaves.
void add_row_operations(LoopList& list, const Inputs& constants, const Inputs& leaves) {
  const auto dropped_out = [](const Inputs& in) { return dropout(in.x, dropped, Draw{.seed = 1}); };
  const auto normed = [](const Inputs& in) { return layer_norm(in.x, in.weight, in.bias); };
  const auto summed = [](const Inputs& in) { return residual(in.x, in.y, dropped, {}); };
  const auto summed_and_normed = [](const Inputs& in) {
    return residual_norm(in.x, in.y, in.weight, in.bias, {.p = dropped});
  };
  const auto& [x, y, weight, bias] = leaves;
  list.add("softmax", 2, [=] { softmax(constants.x); });
  list.add_backward("softmax, backward", 3, {x}, [=] { return softmax(leaves.x); });
  list.add("log softmax", 2, [=] { log_softmax(constants.x); });
  list.add("layer norm", 2, [=] { normed(constants); });
  list.add_backward("layer norm, backward", 3, {x, weight, bias}, [=] { return normed(leaves); });
  list.add("dropout", 2, [=] { dropped_out(constants); });
  list.add_backward("dropout, backward", 2, {x}, [=] { return dropped_out(leaves); });
  list.add("residual, dropout, layer norm", 3, [=] { summed_and_normed(constants); });
  list.add_backward("the same three, backward", 4, {x, y, weight, bias}, [=] { return summed_and_normed(leaves); });
  list.add("residual and dropout", 3, [=] { summed(constants); });
  list.add_backward("residual and dropout, backward", 2, {x, y}, [=] { return summed(leaves); });
}

// Each id reads one row of the table, so a lookup reads as much as it writes. `in_sequences`, [B, T, columns], is
// dL/dy.
void add_lookups(LoopList& list, const Variable& table, const Variable& leaf, const Tensor& in_sequences, Rng& rng) {
  const auto [B, T, columns] = dims<3>(in_sequences, "in_sequences");
  const Tensor ids = randint(0, B * T, {B, T}, rng);
  const Variable positions = constant(rand_uniform({T, columns}, -1, 1, rng));
  const auto summed = [=](const Variable& from) { return embedding_sum(from, ids, 8.0, positions, dropped, {}); };
  list.add("embedding", 2, [=] { embedding(table, ids); });
  list.add(backward_loop("embedding, backward", list.bytes_of(2), {leaf}, in_sequences,
                         [=] { return embedding(leaf, ids); }));
  list.add("embedding, position, dropout", 2, [=] { summed(table); });
  list.add(backward_loop("embedding and so on, backward", list.bytes_of(2), {leaf}, in_sequences,
                         [=] { return summed(leaf); }));
}

void add_zero_padding(LoopList& list, const Tensor& in_sequences) {
  const auto [B, T, columns] = dims<3>(in_sequences, "in_sequences");
  const Variable input = constant(in_sequences.reshape({B, 1, T, columns}));
  const Mask padding = Mask::padding(full({B}, static_cast<double>(T - 2), Dtype::i32));
  list.add("zero padding", 2, [=] { zero_padding(input, padding); });
}

// The work that follows a product in its tiles; the product itself has inner size 1 and costs almost nothing.
void add_tile_work(LoopList& list, i64 rows, const Variable& bias) {
  const Variable x = constant(full({rows, 1}, 1.0)), weight = constant(full({bias.shape()[0], 1}, 1.0));
  list.add("bias", 1, [=] { linear(x, weight, bias); });
  list.add("bias, ReLU, dropout", 1, [=] { linear_relu(x, weight, bias, dropped, {}); });
}

void add_optimizers(LoopList& list, const Tensor& start, const Tensor& gradient) {
  list.add(optimizer_loop<optim::SGD>("SGD with momentum", list.bytes_of(5), start, gradient,
                                      optim::SGDOptions{.momentum = 0.9}, [](optim::SGD& sgd) { sgd.step(1e-4); }));
  list.add(optimizer_loop<optim::Adam>("Adam", list.bytes_of(7), start, gradient, optim::AdamOptions{},
                                       [](optim::Adam& adam) { adam.step(1e-4); }));
  list.add(optimizer_loop<optim::Adam>("clipping and Adam", list.bytes_of(8), start, gradient, optim::AdamOptions{},
                                       [](optim::Adam& adam) { adam.step(1e-4, 1.0); }));
}

}  // namespace

MemoryReader::MemoryReader() : numbers_(zeros({256, 1 << 18})), sums_(zeros({256})) {}

void MemoryReader::read() {
  const i64 chunk = numbers_.size(1);
  parallel_tasks(numbers_.size(0), [=, from = numbers_.data<float>(), to = sums_.write<float>()](i64 i) {
    to[i] = sum_of(from + i * chunk, chunk);
  });
}

std::vector<Loop> bench_loops(i64 rows, i64 columns) {
  Rng rng(1);
  const Tensor a = rand_uniform({rows, columns}, -1, 1, rng), b = a.clone(), row = full({columns}, 1.0);
  const Inputs constants{constant(a), constant(b), constant(row), constant(row)};
  const Inputs leaves{parameter(a), parameter(b), parameter(row), parameter(row.clone())};
  const Tensor in_sequences = b.reshape({-1, sequence_length, columns});
  LoopList list(b);
  list.add(triad(a, b, list.bytes_of(3)));
  add_moves(list, a);
  add_arithmetic(list, a, b, row);
  add_activations(list, constants.x, leaves.x);
  add_row_operations(list, constants, leaves);
  add_lookups(list, constants.x, leaves.x, in_sequences, rng);
  add_zero_padding(list, in_sequences);
  add_tile_work(list, rows, leaves.bias);
  list.add(cross_entropy_loop("cross entropy, 512 classes", rows * columns, 512));
  list.add(cross_entropy_loop("cross entropy, 10,000 classes", rows * columns, 10000));
  add_optimizers(list, a, b);
  return list.take();
}

}  // namespace orrery
