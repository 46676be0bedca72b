// Chapter 6. Tests of the operations that are wrong in f32 alone.
#include <doctest/doctest.h>

#include <cmath>

#include "apps/check/zoo/wrong_operations.h"
#include "autograd/check/gradcheck.h"
#include "autograd/ops.h"
#include "tests/core/support.h"

using namespace orrery;
using small::normal;

TEST_CASE("both mistakes of f32 are right in f64") {
  CHECK(gradcheck([](const Variable& x) { return bugs::tanh_saturated_early_in_f32(x); },
                  {Tensor::of<double>({4}, {-3, -1, 0.5, 2})}));
  CHECK(gradcheck([](const Variable& x, const Variable& w,
                     const Variable& b) { return bugs::linear_with_negated_bias_in_f32(x, w, b); },
                  {normal({2, 3, 4}, 1), normal({5, 4}, 2), normal({5}, 3)}));
}

TEST_CASE("in f32 their values are right, and their gradients where the mistake is not") {
  const Variable x = parameter(Tensor::of<float>({2}, {1, 2}));
  const Variable y = bugs::tanh_saturated_early_in_f32(x);
  CHECK(y.value().at(1) == doctest::Approx(std::tanh(2.0)));
  backward(y, full({2}, 1.0));
  CHECK(x.gradient().at(0) == doctest::Approx(1 - std::tanh(1.0) * std::tanh(1.0)));
  CHECK(x.gradient().at(1) == 0);

  const Variable w = parameter(normal({5, 4}, 2, f32)), b = parameter(normal({5}, 3, f32));
  const Variable in = parameter(normal({3, 4}, 4, f32));
  const Variable z = bugs::linear_with_negated_bias_in_f32(in, w, b), right = linear(in, w, b);
  CHECK(z.value().at(7) == doctest::Approx(right.value().at(7)));
  backward(z, full({3, 5}, 1.0));
  for (i64 i = 0; i < 5; ++i) CHECK(b.gradient().at(i) == -3);
}
