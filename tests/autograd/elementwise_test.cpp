// Chapter 3. Tests of elementwise operations made of two formulas.
#include "autograd/elementwise.h"

#include <doctest/doctest.h>

#include "autograd/check/gradcheck.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

struct Cube {  // y = x^3, saves x
  static constexpr std::string_view name = "cube";
  template <class T> T value(T x) const { return x * x * x; }
  template <class T> T derivative(T x) const { return 3 * x * x; }
};

struct Reciprocal {  // y = 1 / x, saves y
  static constexpr std::string_view name = "reciprocal";
  template <class T> T value(T x) const { return 1 / x; }
  template <class T> T derivative_at_output(T y) const { return -y * y; }
};

struct Stretch {  // y = a x: a formula with a number of its own
  static constexpr std::string_view name = "stretch";
  double a;
  template <class T> T value(T x) const { return static_cast<T>(a) * x; }
  template <class T> T derivative(T) const { return static_cast<T>(a); }
};

}  // namespace

TEST_CASE("two formulas make an operation whose derivative passes the check") {
  Rng rng(1);
  const Tensor x = rand_uniform({3, 5}, 0.5, 2, rng, f64);
  CHECK(gradcheck([](const Variable& v) { return elementwise(Cube{}, v); }, {x}));
  CHECK(gradcheck([](const Variable& v) { return elementwise(Reciprocal{}, v); }, {x}));
  CHECK(gradcheck([](const Variable& v) { return elementwise(Stretch{-2.5}, v); }, {x}));
}

TEST_CASE("the input is saved, or the output, never both") {
  Rng rng(2);
  const auto changed_before_backward = [&](auto formula, bool change_input) {
    Variable x = parameter(rand_uniform({4}, 0.5, 2, rng));
    Variable y = elementwise(formula, x);
    Tensor changed = change_input ? x.value() : y.value();
    fill(changed, 1.0);
    try {
      backward(y, full({4}, 1.0));
    } catch (const Error&) { return true; }
    return false;
  };
  CHECK(changed_before_backward(Cube{}, true));
  CHECK_FALSE(changed_before_backward(Cube{}, false));
  CHECK_FALSE(changed_before_backward(Reciprocal{}, true));
  CHECK(changed_before_backward(Reciprocal{}, false));
}
