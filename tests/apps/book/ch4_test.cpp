// Chapter 4. Solution of ch4's exercise: what layer norm's gradient can never say.
//
// Adding a number to all of x, or stretching x about its mean, leaves y = layer_norm(x) as it is (for eps near 0). So
// dx has no part along (1, ..., 1), nor along n = (x - mean(x)) / deviation.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

TEST_CASE("exercise 4: in each row, layer norm's dx sums to 0, and so does dx n") {
  Rng rng(4);
  const Variable x = parameter(randn({6, 9}, rng, f64));
  const Variable n = layer_norm(x, {}, {}, 1e-14);  // without weight and bias, y is n itself
  backward(n, randn({6, 9}, rng, f64));
  const Tensor along_ones = sum(x.gradient(), {-1}), along_n = sum(x.gradient() * n.value(), {-1});
  for (i64 row = 0; row < 6; ++row) {
    CHECK(std::fabs(along_ones.at(row)) < 1e-12);
    CHECK(std::fabs(along_n.at(row)) < 1e-12);
  }
  CHECK(sum_of_squares(x.gradient()) > 1e-3);  // and it is not simply 0
}
