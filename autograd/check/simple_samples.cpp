// Chapter 6. Rows of the table of proofs: elementwise operations, reductions, and what only moves numbers.
//
// add_unary gives a function of one number a row with tails: every second input is 4 to 10 away from 0, where N(0, 1)
// has almost no draws.
#include "autograd/check/sample_rows.h"
#include "autograd/ops.h"

namespace orrery::sample_rows {
namespace {

void add_unary(SampleTable& table, const std::string& name, Range range,
               const std::function<Variable(const Variable&)>& f) {
  const Function on_first = [f](In x) { return f(x[0]); };
  table.add(name, "[3, 4]", {{{3, 4}, range}}, on_first);
  table.add(name, "scalar", {{{}, Range::positive}}, on_first);
  table.add(name, "size 0", {{{2, 0}, range}}, on_first);
  const Range far = range == Range::positive ? Range::positive_tails : Range::tails;
  table.add(name, "tails", {{{16}, far}}, on_first);
  table.add_long(name, "long", {{{long_flat}, range}}, on_first);
}

void add_binary(SampleTable& table, const std::string& name, Range second,
                const std::function<Variable(const Variable&, const Variable&)>& f) {
  const Function on_both = [f](In x) { return f(x[0], x[1]); };
  table.add(name, "equal shapes", {{{2, 3}}, {{2, 3}, second}}, on_both);
  table.add(name, "broadcast row", {{{4, 3}}, {{3}, second}}, on_both);
  table.add(name, "broadcast both", {{{3, 1, 2}}, {{2, 1}, second}}, on_both);
  table.add(name, "scalar", {{{2, 2}}, {{}, second}}, on_both);
  table.add(name, "size 0", {{{0, 3}}, {{3}, second}}, {{"input 1", no_output}}, on_both);
  table.add_long(name, "long, broadcast row", {{{long_rows, 2}}, {{2}, second}}, on_both);
}

void add_elementwise(SampleTable& table) {
  using V = const Variable&;
  add_binary(table, "add", Range::normal, [](V a, V b) { return add(a, b); });
  add_binary(table, "sub", Range::normal, [](V a, V b) { return sub(a, b); });
  add_binary(table, "mul", Range::normal, [](V a, V b) { return mul(a, b); });
  add_binary(table, "div", Range::positive, [](V a, V b) { return div(a, b); });
  table.add("add", "repeated input", {{{2, 3}}}, [](In x) { return add(x[0], x[0]); });
  table.add("mul", "repeated input", {{{2, 3}}}, [](In x) { return mul(x[0], x[0]); });
  table.add("div", "a number by x", {{{3, 4}, Range::positive}}, [](In x) { return 2.5 / x[0]; });
  add_unary(table, "neg", Range::normal, [](V x) { return neg(x); });
  add_unary(table, "scale", Range::normal, [](V x) { return scale(x, -1.7); });
  // -1.75 is exact in f32. Where x cancels a number that is not, only its rounding would be left.
  add_unary(table, "shift", Range::normal, [](V x) { return shift(x, -1.75); });
  add_unary(table, "pow", Range::positive, [](V x) { return pow(x, 2.5); });
  table.add("pow", "negative base", {{{5}}}, [](In x) { return pow(x[0], 3); });
  add_unary(table, "exp", Range::normal, [](V x) { return exp(x); });
  add_unary(table, "log", Range::positive, [](V x) { return log(x); });
  add_unary(table, "sqrt", Range::positive, [](V x) { return sqrt(x); });
  add_unary(table, "tanh", Range::normal, [](V x) { return tanh(x); });
  add_unary(table, "sigmoid", Range::normal, [](V x) { return sigmoid(x); });
  add_unary(table, "relu", Range::away_from_zero, [](V x) { return relu(x); });
  add_unary(table, "gelu", Range::normal, [](V x) { return gelu(x); });
  add_unary(table, "gelu_tanh", Range::normal, [](V x) { return gelu_tanh(x); });
  add_unary(table, "silu", Range::normal, [](V x) { return silu(x); });
  add_unary(table, "softplus", Range::normal, [](V x) { return softplus(x); });
  add_unary(table, "elu", Range::away_from_zero, [](V x) { return elu(x, 0.7); });
  add_unary(table, "abs", Range::away_from_zero, [](V x) { return abs(x); });
  add_unary(table, "clamp", Range::away_from_zero, [](V x) { return clamp(x, 0.02, 6); });
  add_unary(table, "sin", Range::normal, [](V x) { return sin(x); });
  add_unary(table, "cos", Range::normal, [](V x) { return cos(x); });
  add_binary(table, "where", Range::normal,
             [](V a, V b) { return where(spread_ids(broadcast(a.shape(), b.shape(), "where"), 2), a, b); });
}

void add_reductions(SampleTable& table) {
  const auto add = [&](const std::string& name, Range range, auto f) {
    table.add(name, "all axes", {{{2, 3}, range}}, [f](In x) { return f(x[0], Axes{}, false); });
    table.add(name, "last axis", {{{3, 4}, range}}, [f](In x) { return f(x[0], Axes{-1}, false); });
    table.add(name, "axes 0 and 2", {{{2, 3, 4}, range}}, [f](In x) { return f(x[0], Axes{0, 2}, false); });
    table.add(name, "kept axis", {{{4, 1, 3}, range}}, [f](In x) { return f(x[0], Axes{0}, true); });
    const Range in_rows = range == Range::distinct ? Range::distinct_nearby : range;
    table.add_long(name, "long, last axis", {{{long_rows, 2}, in_rows}},
                   [f](In x) { return f(x[0], Axes{-1}, false); });
    table.add_long(name, "long, axis 0", {{{long_rows, 2}, range}}, [f](In x) { return f(x[0], Axes{0}, false); });
  };
  add("sum", Range::normal, [](const Variable& x, const Axes& axes, bool keep) { return sum(x, axes, keep); });
  add("mean", Range::normal, [](const Variable& x, const Axes& axes, bool keep) { return mean(x, axes, keep); });
  add("max", Range::distinct, [](const Variable& x, const Axes& axes, bool keep) { return max(x, axes, keep); });
  add("min", Range::distinct, [](const Variable& x, const Axes& axes, bool keep) { return min(x, axes, keep); });
  add("variance", Range::normal,
      [](const Variable& x, const Axes& axes, bool keep) { return variance(x, axes, keep); });
  add("log_sum_exp", Range::normal,
      [](const Variable& x, const Axes& axes, bool keep) { return log_sum_exp(x, axes, keep); });
  table.add("variance", "of the numbers themselves", {{{3, 4}}}, [](In x) { return variance(x[0], {1}, false, 0); });
  table.add("log_sum_exp", "tails", {{{3, 6}, Range::tails}}, [](In x) { return log_sum_exp(x[0], {-1}); });
  table.add("sum", "size 0", {{{0, 3}}}, [](In x) { return sum(x[0], {0}); });
  table.add("cumulative_sum", "last axis", {{{3, 4}}}, [](In x) { return cumulative_sum(x[0], -1); });
  table.add("cumulative_sum", "inner axis", {{{2, 3, 2}}}, [](In x) { return cumulative_sum(x[0], 1); });
  table.add_long("cumulative_sum", "long", {{{long_rows, 2}}}, [](In x) { return cumulative_sum(x[0], 0); });
  table.add("normalize", "rows", {{{2, 3, 4}}}, [](In x) { return normalize(x[0]); });
  table.add_long("normalize", "long", {{{long_rows, 3}}}, [](In x) { return normalize(x[0]); });
}

void add_layout(SampleTable& table) {
  table.add("reshape", "[2, 6] to [3, 4]", {{{2, 6}}}, [](In x) { return reshape(x[0], {3, -1}); });
  table.add("permute", "three axes", {{{2, 3, 4}}}, [](In x) { return permute(x[0], {2, 0, -2}); });
  table.add("concat", "axis 1", {{{2, 3}}, {{2, 1}}, {{2, 2}}}, [](In x) { return concat({x[0], x[1], x[2]}, 1); });
  table.add("concat", "repeated input", {{{2, 3}}}, [](In x) { return concat({x[0], x[0]}, 0); });
  table.add("concat", "size 0 and 1", {{{2, 0}}, {{2, 1}}}, [](In x) { return concat({x[0], x[1]}, 1); });
  table.add("slice", "size 0", {{{3, 2}}}, {{"input 0", no_output}}, [](In x) { return slice(x[0], 1, 1, 1); });
  table.add("slice", "size 1", {{{1, 1}}}, [](In x) { return slice(x[0], 1, 0, 1); });
  table.add("slice", "inner axis", {{{2, 5, 2}}}, [](In x) { return slice(x[0], 1, 1, -1); });
  table.add("slice", "axis 0, overlapping", {{{4, 2}}}, [](In x) { return slice(x[0], 0, 0, 3) * slice(x[0], 0, 1); });
  table.add("split", "two parts", {{{2, 5}}}, [](In x) {
    const auto [left, right] = split(x[0], 2, -1);
    return concat({exp(left), right}, 1);
  });
  table.add("split", "a part unused", {{{5, 2}}}, [](In x) { return split(x[0], 2, 0)[1]; });
  table.add("split3", "last axis", {{{2, 6}}}, [](In x) {
    const auto [q, k, v] = split3(x[0], -1);
    return q * k + v;
  });
}

void add_chosen(SampleTable& table) {
  const Tensor few = spread_ids({3, 2}, 4), distinct = Tensor::of<i32>({3, 2}, {0, 3, 2, 1, 3, 0});
  table.add("broadcast_to", "two axes", {{{3, 1}}}, [](In x) { return broadcast_to(x[0], {2, 3, 4}); });
  table.add_long("broadcast_to", "long", {{{1, 2}}}, [](In x) { return broadcast_to(x[0], {long_rows, 2}); });
  table.add("select", "inner axis", {{{2, 3, 4}}}, [](In x) { return select(x[0], 1, -1); });
  table.add_long("select", "long", {{{2, long_flat}}}, [](In x) { return select(x[0], 0, 1); });
  table.add("index_rows", "repeated ids", {{{4, 3, 2}}}, [few](In x) { return index_rows(x[0], few); });
  table.add_long("index_rows", "long", {{{5, 2}}}, [](In x) { return index_rows(x[0], spread_ids({long_rows}, 5)); });
  table.add("gather", "last axis", {{{3, 4}}}, [few](In x) { return gather(x[0], -1, few); });
  table.add("gather", "axis 0, repeated ids", {{{4, 2}}}, [few](In x) { return gather(x[0], 0, few); });
  table.add_long("gather", "long", {{{long_rows, 3}}}, [](In x) {
    return gather(x[0], 1, spread_ids({long_rows, 2}, 3));
  });
  const std::vector<Input> row_and_part{{{3, 4}}, {{3, 2}}};
  table.add("scatter", "written", row_and_part, [distinct](In x) { return scatter(x[0], 1, distinct, x[1]); });
  table.add("scatter", "added", row_and_part, [few](In x) { return scatter(x[0], 1, few, x[1], true); });
  table.add_long("scatter", "long", {{{5, 2}}, {{long_rows, 2}}}, [](In x) {
    return scatter(x[0], 0, spread_ids({long_rows, 2}, 5), x[1], true);
  });
}

// Targets: any numbers, or probabilities if `as` is softmax or sigmoid.
Tensor targets(const Shape& shape, Dtype dtype, Variable (*as)(const Variable&)) {
  Rng rng(3);
  return as(constant(randn(shape, rng, dtype))).value();
}

void add_compared(SampleTable& table) {
  const auto add = [&](const std::string& name, auto as, auto loss) {
    const auto with = [=](const LossOptions& options) {
      return [=](In x) { return loss(x[0], targets(x[0].shape(), x[0].dtype(), as), options); };
    };
    table.add(name, "mean", {{{2, 2}}}, with({}));  // a few, whose gradients are not small beside the numbers
    table.add(name, "given divisor", {{{3, 4}}}, with({.reduction = Reduction::divisor, .divisor = 7}));
    table.add(name, "sum", {{Shape{}}}, with({.reduction = Reduction::sum}));
    table.add(name, "size 0", {{{0, 4}}}, with({}));
    table.add_long(name, "long", {{{long_rows, 3}}}, with({.reduction = Reduction::sum}));
  };
  using V = const Variable&;
  using T = const Tensor&;
  using Options = const LossOptions&;
  add("mse", neg, [](V x, T t, Options options) { return mse(x, t, options); });
  add("bce_with_logits", sigmoid, [](V x, T t, Options options) { return bce_with_logits(x, t, options); });
  add("kl_divergence", sigmoid, [](V x, T t, Options options) { return kl_divergence(x, t, options); });
}

void add_long_layout(SampleTable& table) {
  const std::vector<Input> one{{{long_rows, 3}}};
  table.add_long("reshape", "long", one, [](In x) { return reshape(x[0], {3, -1}); });
  table.add_long("permute", "long", one, [](In x) { return permute(x[0], {1, 0}); });
  table.add_long("concat", "long", {{{3, 2}}, {{long_rows, 2}}}, [](In x) { return concat({x[0], x[1]}, 0); });
  table.add_long("slice", "long", one, [](In x) { return slice(x[0], 0, 1); });
  table.add_long("split", "long", one, [](In x) {
    const auto [left, right] = split(x[0], 1, -1);
    return concat({right, exp(left)}, 1);
  });
  table.add_long("split3", "long", one, [](In x) {
    const auto [q, k, v] = split3(x[0], -1);
    return q * k + v;
  });
}

}  // namespace

void add_simple(SampleTable& table) {
  add_elementwise(table);
  add_reductions(table);
  add_layout(table);
  add_long_layout(table);
  add_chosen(table);
  add_compared(table);
}

}  // namespace orrery::sample_rows
