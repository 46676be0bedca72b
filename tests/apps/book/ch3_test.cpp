// Chapter 3. Solution of ch3's exercise: a gate, y = a s(b), with s(b) = 1 / (1 + e^{-b}).
#include <doctest/doctest.h>

#include "autograd/apply.h"
#include "autograd/check/gradcheck.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/machine/math.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// da = dy s,  db = dy a s (1 - s) = dy y - dy y s
struct Gate {
  static constexpr std::string_view name = "gate";
  Saved s, y;
  Tensor forward(const Tensor& a, const Tensor& b) {
    const Tensor open = kernels::map(b, name, [](auto v) { return math::sigmoid(v); });
    s = open;
    const Tensor result = kernels::broadcast_map(a, open, name, [](auto value, auto part) { return value * part; });
    y = result;
    return result;
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, mul(dy, s));
    if (dx.wanted(1)) dx.add(1, sub(mul(dy, y), mul(mul(dy, y), s)));
  }
};

// One 1 - s too few.
struct WrongGate : Gate {
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, mul(dy, s));
    dx.add(1, mul(dy, y));
  }
};

}  // namespace

TEST_CASE("exercise 3: a gate with two inputs is right, also where one of them is broadcast") {
  Rng rng(3);
  const auto gate = [](const Variable& a, const Variable& b) { return apply(Gate{}, a, b); };
  CHECK(gradcheck(gate, {randn({2, 3}, rng, f64), randn({2, 3}, rng, f64)}));
  CHECK(gradcheck(gate, {randn({2, 3}, rng, f64), randn({3}, rng, f64)}));
  const Variable a = constant(randn({2, 3}, rng, f64)), b = constant(randn({2, 3}, rng, f64));
  const Tensor difference = gate(a, b).value() - (a * sigmoid(b)).value();
  CHECK(sum_of_squares(difference) < 1e-28);
}

TEST_CASE("exercise 3: the same gate with 1 - s forgotten is rejected in its second input alone") {
  Rng rng(3);
  const auto gate = [](const Variable& a, const Variable& b) { return apply(WrongGate{}, a, b); };
  const GradcheckReport report = gradcheck(gate, {randn({2, 3}, rng, f64), randn({2, 3}, rng, f64)});
  CHECK_FALSE(report);
  CHECK(report.failures.size() == 6);
  for (const GradcheckFailure& failure : report.failures) CHECK(failure.name == "input 1");
}
