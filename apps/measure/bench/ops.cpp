// Chapter 9. `orrery bench ops`: how fast every loop other than a matrix product is, beside the triad.
//
// Such a loop reads and writes memory and computes little in between, so memory limits its speed. If it is slower than
// the triad  a_i = b_i + s c_i  (McCalpin's STREAM), it spends time on arithmetic or moves the same bytes twice. Each
// byte that must be read or written counts once. All loops are measured with matrices that stay in the caches of the
// cores, and with matrices that do not fit into any cache.
#include <memory>
#include <utility>

#include "apps/measure/bench/micro.h"
#include "autograd/grads.h"
#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "optim/adam.h"
#include "optim/sgd.h"

namespace orrery {
namespace {

constexpr double loop_dropout = 0.1;
constexpr i64 heads = 8, sequence_length = 32, columns = 512, rows_in_cache = 128, rows_beyond_cache = 32768;

// Matrices of `rows` rows of 512 numbers, and rows of 512: as tensors, and as variables.
struct LoopInputs {
  Tensor a, b, to, row, in_heads, ids;
  Variable x, y, weight, bias, positions, in_sequences, ones, column;
  Mask padding;

  LoopInputs(i64 rows, Variable (*leaf)(const Tensor&)) {
    const i64 T = sequence_length, B = rows / T;
    Rng rng(1);
    a = rand_uniform({rows, columns}, -1, 1, rng);
    b = a.clone();
    to = a.clone();
    row = full({columns}, 1.0);
    in_heads = a.reshape({B, T, heads, columns / heads});
    ids = randint(0, rows, {B, T}, rng);
    x = leaf(a);
    y = leaf(b);
    weight = leaf(row);
    bias = leaf(row.clone());
    positions = constant(rand_uniform({T, columns}, -1, 1, rng));
    in_sequences = constant(a.reshape({B, 1, T, columns}));
    ones = constant(full({rows, 1}, 1.0));
    column = constant(full({columns, 1}, 1.0));
    padding = Mask::padding(full({B}, static_cast<double>(T - 2), Dtype::i32));
  }
  double bytes() const { return static_cast<double>(a.bytes()); }
};

// A function, and how many matrices it reads and writes.
struct LoopFunction {
  const char* name;
  double arrays;
  void (*run)(LoopInputs&);
};
// An operation, and how many matrices its forward and its backward read and write; 0: backward is not measured. Its
// forward is that of constants, its backward that of leaves. The products of a bias have inner size 1.
struct LoopOperation {
  const char* name;
  double forward_arrays, backward_arrays;
  Variable (*forward)(const LoopInputs&);
};
using LoopIn = const LoopInputs&;
// clang-format off
constexpr LoopFunction loop_functions[] = {
    {"triad a = b + s c",      3, [](LoopInputs& in) { triad(in.a, in.b, in.to); }},
    {"copy",                   2, [](LoopInputs& in) { in.a.clone(); }},
    {"transposition",          2, [](LoopInputs& in) { permute(in.a, {1, 0}); }},
    {"permutation into heads", 2, [](LoopInputs& in) { permute(in.in_heads, {0, 2, 1, 3}); }},
    {"add",                    3, [](LoopInputs& in) { add(in.a, in.b); }},
    {"add a row (bias)",       2, [](LoopInputs& in) { add(in.a, in.row); }},
    {"add in place",           3, [](LoopInputs& in) { add_in_place(in.to, in.b); }},
    {"scale",                  2, [](LoopInputs& in) { scale(in.a, 0.5); }},
    {"sum of squares",         1, [](LoopInputs& in) { sum_of_squares(in.a); }},
    {"column sums",            1, [](LoopInputs& in) { sum(in.a, {0}); }},
    {"max of rows",            1, [](LoopInputs& in) { max(in.a, {-1}); }},
    {"argmax of rows",         1, [](LoopInputs& in) { argmax(in.a); }},
};
constexpr LoopOperation loop_operations[] = {
    {"relu",                 2, 3, [](LoopIn in) { return relu(in.x); }},
    {"tanh",                 2, 0, [](LoopIn in) { return tanh(in.x); }},
    {"silu",                 2, 0, [](LoopIn in) { return silu(in.x); }},
    {"gelu",                 2, 3, [](LoopIn in) { return gelu(in.x); }},
    {"softmax",              2, 3, [](LoopIn in) { return softmax(in.x); }},
    {"log softmax",          2, 0, [](LoopIn in) { return log_softmax(in.x); }},
    {"layer norm",           2, 3, [](LoopIn in) { return layer_norm(in.x, in.weight, in.bias); }},
    {"dropout",              2, 2, [](LoopIn in) { return dropout(in.x, loop_dropout, Draw{.seed = 1}); }},
    {"residual and dropout", 3, 3, [](LoopIn in) { return residual(in.x, in.y, loop_dropout, {}); }},
    {"residual, dropout, layer norm", 4, 4,
     [](LoopIn in) { return residual_norm(in.x, in.y, in.weight, in.bias, {.p = loop_dropout}); }},
    {"embedding",            2, 2, [](LoopIn in) { return embedding(in.x, in.ids); }},
    {"embedding, position, dropout", 2, 2,
     [](LoopIn in) { return embedding_sum(in.x, in.ids, 8.0, in.positions, loop_dropout, {}); }},
    {"zero padding",         2, 0, [](LoopIn in) { return zero_padding(in.in_sequences, in.padding); }},
    {"bias",                 1, 0, [](LoopIn in) { return linear(in.ones, in.column, in.bias); }},
    {"bias, ReLU, dropout",  1, 0,
     [](LoopIn in) { return linear_relu(in.ones, in.column, in.bias, loop_dropout, {}); }},
};
// clang-format on

std::shared_ptr<LoopInputs> constants_of(i64 rows) {
  return std::make_shared<LoopInputs>(rows, [](const Tensor& t) { return constant(t); });
}
std::shared_ptr<LoopInputs> leaves_of(i64 rows) {
  return std::make_shared<LoopInputs>(rows, [](const Tensor& t) { return parameter(t); });
}

// The backward pass of a single operation, without the engine and other nodes.
void run_backward(const Variable& y) {
  Grads dx(*y.node());
  y.node()->backward(dx);
}

Work backward_of(const LoopOperation& operation, const std::shared_ptr<LoopInputs>& in) {
  const auto y = std::make_shared<Variable>();
  return {.run = [y] { run_backward(*y); },
          .amount = operation.backward_arrays * in->bytes(),
          .prepare =
              [=, forward = operation.forward] {
                for (Variable leaf : {in->x, in->y, in->weight, in->bias}) leaf.clear_gradient();
                *y = forward(*in);
                y->node()->outputs[0].gradient = in->b.reshape(y->shape());
              }};
}

// The loss and its derivative together, since an implementation may divide the work between them. As in a training, the
// logits come from an operation and nobody else keeps them: at least, they are read once and overwritten.
Work cross_entropy_work(i64 rows, i64 classes) {
  Rng rng(1);
  const Tensor logits = rand_uniform({std::max<i64>(1, rows * columns / classes), classes}, -1, 1, rng);
  const Tensor targets = randint(0, classes, {logits.size(0)}, rng);
  const auto x = std::make_shared<Variable>();
  return {.run =
              [=] {
                const Variable loss = cross_entropy(std::exchange(*x, {}), targets, {.label_smoothing = 0.1});
                loss.node()->outputs[0].gradient = full({}, 1.0);
                run_backward(loss);
              },
          .amount = 2.0 * static_cast<double>(logits.bytes()),
          .prepare = [=, leaf = parameter(logits)] { *x = leaf * 1.0; }};
}

// One step of an optimiser over one parameter, which is clipped to `max_norm` if that is not 0.
template <class Optimizer, class Options>
Work optimizer_work(double arrays, i64 rows, const Options& options, double max_norm = 0) {
  Rng rng(1);
  const Tensor gradient = rand_uniform({rows, columns}, -1, 1, rng);
  Variable p = parameter(gradient.clone());
  return {.run =
              [=, optimizer = std::make_shared<Optimizer>(std::vector<Variable>{p}, options)] {
                if (max_norm > 0) return static_cast<void>(optimizer->step(1e-4, max_norm));
                optimizer->step(1e-4);
              },
          .amount = arrays * static_cast<double>(gradient.bytes()),
          .prepare = [p, gradient]() mutable { p.mutable_gradient() = gradient; }};
}

std::vector<Entry> entries_of_size(i64 rows) {
  std::vector<Entry> entries;
  const auto add_entry = [&](const std::string& name, const std::function<Work()>& own) {
    entries.push_back({.name = name + (rows == rows_in_cache ? ", 256 KB" : ", 64 MB"), .trial = [=] {
                         const auto in = constants_of(rows);
                         const auto run = [in] { triad(in->a, in->b, in->to); };
                         return Trial{.own = own(), .rival = Work{.run = run, .amount = 3 * in->bytes()}};
                       }});
  };
  for (const LoopFunction& function : loop_functions) {
    add_entry(function.name, [=] {
      const auto in = constants_of(rows);
      return Work{.run = [=] { function.run(*in); }, .amount = function.arrays * in->bytes()};
    });
  }
  for (const LoopOperation& operation : loop_operations) {
    add_entry(operation.name, [=] {
      const auto in = constants_of(rows);
      return Work{.run = [=] { operation.forward(*in); }, .amount = operation.forward_arrays * in->bytes()};
    });
    if (operation.backward_arrays > 0)
      add_entry(operation.name + std::string(", backward"), [=] { return backward_of(operation, leaves_of(rows)); });
  }
  add_entry("cross entropy, 512 classes", [=] { return cross_entropy_work(rows, 512); });
  add_entry("cross entropy, 10,000 classes", [=] { return cross_entropy_work(rows, 10000); });
  add_entry("SGD with momentum",
            [=] { return optimizer_work<optim::SGD>(5, rows, optim::SGDOptions{.momentum = 0.9}); });
  add_entry("Adam", [=] { return optimizer_work<optim::Adam>(7, rows, optim::AdamOptions{}); });
  add_entry("clipping and Adam", [=] { return optimizer_work<optim::Adam>(8, rows, optim::AdamOptions{}, 1.0); });
  return entries;
}

}  // namespace

MicroBench ops_bench() {
  return {.name = "ops",
          .what = "The speed of everything except products",
          .help =
              "Beside the triad a = b + s c, which only memory limits, at the same size.\nExample:\n"
              "  orrery bench ops --threads 2 'gelu*' 'softmax*'",
          .entries =
              [](const BenchOptions&) {
                std::vector<Entry> entries = entries_of_size(rows_in_cache);
                for (Entry& entry : entries_of_size(rows_beyond_cache)) entries.push_back(std::move(entry));
                return entries;
              },
          .time = "us",
          .rate = "GB/s",
          .rival = "triad",
          .ratio = "of triad"};
}

}  // namespace orrery
