// Chapter 3. Tests of the search for the first NaN: each operation in turn is made to fail, and must be named.
#include "autograd/check/first_nan.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/autograd/small_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using small::contains;
using small::leaf;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// A loss of many different operations.
struct Net {
  Variable table, weight, bias, gain;
  Net() {
    Rng rng(3);
    table = parameter(randn({5, 4}, rng), "table");
    weight = parameter(randn({4, 4}, rng), "weight");
    bias = parameter(randn({4}, rng), "bias");
    gain = parameter(full({4}, 1.0), "gain");
  }
  Variable loss() const {
    const Variable x = embedding(table, Tensor::of<i32>({3, 2}, {0, 1, 2, 3, 4, 0}));
    const Variable hidden = gelu(matmul(x, weight) + bias);
    const Variable kept = dropout(layer_norm(hidden + x, gain, bias), 0.2, {.seed = 1, .step = 2});
    const auto [left, right] = split(permute(reshape(kept, {2, 3, 4}), {1, 0, 2}), 2, -1);
    const Variable gate = sigmoid(left) * tanh(right) + softmax(right) / (exp(left) + constant(full({2}, 2.0)));
    const Variable scores = concat({gate, log(pow(left, 2) + constant(full({2}, 1.0)))}, -1);
    return cross_entropy(scores, Tensor::of<i32>({3, 2}, {0, 1, 2, 3, 0, 1})) + mean(max(scores, {-1})) * 0.1;
  }
};

}  // namespace

TEST_CASE("a value's range: smallest and largest finite number, what is not finite, where it first is") {
  const ValueRange range = range_of(Tensor::of<double>({2, 3}, {1, -2, inf, std::nan(""), 5, -inf}));
  CHECK(range.min == -2);
  CHECK(range.max == 5);
  CHECK(range.infinities == 2);
  CHECK(range.nans == 1);
  CHECK(range.first_non_finite == 2);
  CHECK(small::text_of(range) == "[2, 3] min -2 max 5, 1 NaN, 2 infinite, first at [0, 2]");
  CHECK(small::text_of(range_of(Tensor::of<double>({2}, {3, 4}))) == "[2] min 3 max 4, all finite");
  CHECK(range_of(zeros({0})).finite());
}

TEST_CASE("log of 0, division by 0 and an exp that overflows are told with their inputs and where these came from") {
  const Variable x = leaf({1, 0, 2}, "encoder.x");
  const auto first = [](const auto& loss) { return find_first_non_finite(loss); };
  CHECK(first([&] { return sum(log(x)) * 2.0; }).text ==
        "log (operation 1 of forward) gave infinity from finite inputs"
        "\n  input 0: [3] min 0 max 2, all finite  from parameter encoder.x"
        "\n  output 0: [3] min 0 max 0.693147, 1 infinite, first at [1]");
  const FirstNonFinite quotient = first([&] { return sum(constant(full({3}, 1.0, f64)) / x); });
  CHECK(quotient.operation == "div");
  CHECK(contains(quotient.text, "input 0: [3] min 1 max 1, all finite  from a constant"));
  const FirstNonFinite overflow = first([&] { return sum(exp(scale(gelu(x), 1000))); });
  CHECK(overflow.operation == "exp");
  CHECK(contains(overflow.text, "from scale, after parameter encoder.x"));
}

TEST_CASE("infinities of a mask that softmax removes are no failure; if nothing removes them, the constant is named") {
  const Variable x = leaf({1, 2}, "x"), y = leaf({0, 1}, "y");
  const Variable mask = constant(Tensor::of<double>({2}, {0, -inf}));
  CHECK(find_first_non_finite([&] { return sum(softmax(x + mask)); }).found == false);
  CHECK(find_first_non_finite([&] { return sum(softmax(x + mask)) + sum(log(y)); }).operation == "log");
  const FirstNonFinite read = find_first_non_finite([&] { return sum(x + mask); });
  CHECK(read.operation == "add");
  CHECK(contains(read.text, "read a constant that is not finite"));
}

TEST_CASE("where forward is finite, the first backward to leave the finite numbers is named") {
  const Variable x = leaf({0, 4}, "x");
  const FirstNonFinite root = find_first_non_finite([&] { return sum(sqrt(x * x)); });
  CHECK(root.operation == "sqrt");
  CHECK(root.in_backward);
  CHECK(contains(root.text, "sqrt (operation 2 of backward) gave "));
  CHECK(contains(root.text, "input 0: [2] min 0 max 16, all finite  from mul, after parameter x"));
  const Variable big = leaf({0.1}, "big");
  const FirstNonFinite total = find_first_non_finite([&] { return sum(big * 1e308 + big * 1e308); });
  CHECK(total.found);
  CHECK(contains(total.text, "the gradients that reach parameter big are finite, but add up to infinity"));
}

TEST_CASE("a finite pass is said to be finite; parameters and their gradients stay what they were") {
  Net net;
  backward(net.loss());
  const Tensor value = net.weight.value().clone(), gradient = net.weight.gradient().clone();
  CHECK(explain_non_finite([&] { return net.loss(); }) == "run once more, every number of the pass was finite");
  CHECK(same_bits(net.weight.value(), value));
  CHECK(same_bits(net.weight.gradient(), gradient));
}

TEST_CASE("check_finite is one line in a training loop: silent while all is finite, else it names the operation") {
  Variable x = leaf({1, 2}, "x");
  const auto loss = [&] { return sum(sqrt(x)); };
  const Parameters parameters{{"x", x}};
  const auto error = [&] {
    x.clear_gradient();
    const Variable y = loss();
    backward(y);
    return small::error_of([&] { check_finite(y.item(), parameters, loss); });
  };
  CHECK(error() == "");
  x.mutable_value().write<double>()[1] = -1;
  CHECK(error().starts_with(
      "train: the loss is not finite, so the optimiser's step must not be made\nsqrt (operation 1 of forward)"));
  x.mutable_value().write<double>()[1] = 0;
  CHECK(error().starts_with(
      "train: the gradient of parameter x is not finite, so the optimiser's step must not be made\nsqrt "));
  CHECK(contains(error(), "of backward) gave infinity as gradient of its input 0"));
}

TEST_CASE("gradients whose squares overflow are finite for check_finite") {
  Variable x = leaf({1, 2}, "x");
  x.mutable_gradient() = full({2}, 1e200, f64);
  CHECK_NOTHROW(check_finite(1, {{"x", x}}, [&] { return sum(x); }));
}
