// Chapter 2. Solution of ch2's exercise: each use of a value adds its part to the value's gradient.
#include <doctest/doctest.h>

#include "autograd/ops.h"

using namespace orrery;

TEST_CASE("exercise 2: a a + a has the derivative 2 a + 1, one part from each of the three uses") {
  const Variable a = parameter(Tensor::of<double>({}, {3}), "a");
  backward(a * a + a);
  CHECK(a.gradient().item() == 2 * 3 + 1);
}

TEST_CASE("exercise 2: cutting one use off takes its part away") {
  const Variable a = parameter(Tensor::of<double>({}, {3}), "a");
  backward(a * detach(a) + a);
  CHECK(a.gradient().item() == 3 + 1);
}
