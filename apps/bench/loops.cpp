// Chapter 9. The loops: functions of the library, called as in training, and the triad.
//
// Serves: core/machine/parallel.h
#include "apps/bench/loops.h"

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

// Sums in eight registers, so that the arithmetic takes less time than the memory.
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
  const Tensor a = rand_uniform({rows, columns}, -1, 1, rng), b = a.clone(), d_row = full({columns}, 1.0);
  const Variable x = constant(a), y = constant(b), row = constant(d_row);
  const Variable leaf = parameter(a), y_leaf = parameter(b), weight = parameter(d_row), bias = parameter(d_row.clone());
  const double array = static_cast<double>(a.bytes());
  const Tensor in_sequences = b.reshape({-1, sequence_length, columns});
  const Tensor in_heads = a.reshape({-1, sequence_length, heads, columns / heads});
  std::vector<Loop> loops{triad(a, b, 3 * array)};
  const auto add_loop = [&](const std::string& name, double arrays, const std::function<void()>& run) {
    loops.push_back({.name = name, .bytes = arrays * array, .run = run});
  };
  const auto add_backward = [&](const std::string& name, double arrays, const std::vector<Variable>& leaves,
                                const std::function<Variable()>& forward) {
    loops.push_back(backward_loop(name, arrays * array, leaves, b, forward));
  };
  add_loop("copy", 2, [=] { a.clone(); });
  add_loop("transposition", 2, [=] { permute(a, {1, 0}); });
  add_loop("permutation into heads", 2, [=] { permute(in_heads, {0, 2, 1, 3}); });
  add_loop("add", 3, [=] { add(a, b); });
  add_loop("add a row (bias)", 2, [=] { add(a, d_row); });
  add_loop("add in place", 3, [=, to = a.clone()]() mutable { add_in_place(to, b); });
  add_loop("scale", 2, [=] { scale(a, 0.5); });
  add_loop("sum of squares", 1, [=] { sum_of_squares(a); });
  add_loop("column sums", 1, [=] { sum(a, {0}); });
  add_loop("max of rows", 1, [=] { max(a, {-1}); });
  add_loop("argmax of rows", 1, [=] { argmax(a); });
  add_loop("relu", 2, [=] { relu(x); });
  add_backward("relu, backward", 3, {leaf}, [=] { return relu(leaf); });
  add_loop("tanh", 2, [=] { tanh(x); });
  add_loop("silu", 2, [=] { silu(x); });
  add_loop("gelu", 2, [=] { gelu(x); });
  add_backward("gelu, backward", 3, {leaf}, [=] { return gelu(leaf); });
  add_loop("softmax", 2, [=] { softmax(x); });
  add_backward("softmax, backward", 3, {leaf}, [=] { return softmax(leaf); });
  add_loop("log softmax", 2, [=] { log_softmax(x); });
  add_loop("layer norm", 2, [=] { layer_norm(x, row, row); });
  add_backward("layer norm, backward", 3, {leaf, weight, bias}, [=] { return layer_norm(leaf, weight, bias); });
  add_loop("dropout", 2, [=] { dropout(x, dropped, Draw{.seed = 1}); });
  add_backward("dropout, backward", 2, {leaf}, [=] { return dropout(leaf, dropped, Draw{.seed = 1}); });
  const auto residual_and_norm = [=] {
    return residual_norm(leaf, y_leaf, weight, bias, 1e-5, LayerNormForm::root_of_variance_plus_eps, dropped, {});
  };
  add_loop("residual, dropout, layer norm", 3,
           [=] { residual_norm(x, y, row, row, 1e-5, LayerNormForm::root_of_variance_plus_eps, dropped, {}); });
  add_backward("the same three, backward", 4, {leaf, y_leaf, weight, bias}, residual_and_norm);
  add_loop("residual and dropout", 3, [=] { residual(x, y, dropped, {}); });
  add_backward("residual and dropout, backward", 2, {leaf, y_leaf},
               [=] { return residual(leaf, y_leaf, dropped, {}); });
  // One row of the table for each place: a lookup reads as much as it writes.
  const Tensor ids = randint(0, rows, {rows / sequence_length, sequence_length}, rng);
  const Variable positions = constant(rand_uniform({sequence_length, columns}, -1, 1, rng));
  add_loop("embedding", 2, [=] { embedding(x, ids); });
  loops.push_back(
      backward_loop("embedding, backward", 2 * array, {leaf}, in_sequences, [=] { return embedding(leaf, ids); }));
  const auto summed = [=](const Variable& table) { return embedding_sum(table, ids, 8.0, positions, dropped, {}); };
  add_loop("embedding, position, dropout", 2, [=] { summed(x); });
  loops.push_back(
      backward_loop("embedding and so on, backward", 2 * array, {leaf}, in_sequences, [=] { return summed(leaf); }));
  const Variable padded_input = constant(in_sequences.reshape({-1, 1, sequence_length, columns}));
  const Mask padding =
      Mask::padding(full({rows / sequence_length}, static_cast<double>(sequence_length - 2), Dtype::i32));
  add_loop("zero padding", 2, [=] { zero_padding(padded_input, padding); });
  // The work that follows a product in its tiles; the product itself has inner size 1 and costs almost nothing.
  const Variable narrow = constant(full({rows, 1}, 1.0)), narrow_weight = parameter(full({columns, 1}, 1.0));
  add_loop("bias", 1, [=] { linear(narrow, constant(narrow_weight.value()), bias); });
  add_loop("bias, ReLU, dropout", 1, [=] { linear_relu(narrow, narrow_weight, bias, dropped, {}); });
  loops.push_back(cross_entropy_loop("cross entropy, 512 classes", rows * columns, 512));
  loops.push_back(cross_entropy_loop("cross entropy, 10,000 classes", rows * columns, 10000));
  loops.push_back(optimizer_loop<optim::SGD>("SGD with momentum", 5 * array, a, b, optim::SGDOptions{.momentum = 0.9},
                                             [](optim::SGD& sgd) { sgd.step(1e-4); }));
  loops.push_back(optimizer_loop<optim::Adam>("Adam", 7 * array, a, b, optim::AdamOptions{},
                                              [](optim::Adam& adam) { adam.step(1e-4); }));
  loops.push_back(optimizer_loop<optim::Adam>("clipping and Adam", 8 * array, a, b, optim::AdamOptions{},
                                              [](optim::Adam& adam) { adam.step(1e-4, 1.0); }));
  return loops;
}

}  // namespace orrery
