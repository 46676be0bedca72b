// Chapter 1. Solution of ch1's exercise: one row of means, taken from every row by broadcasting.
#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

TEST_CASE("exercise 1: columns with mean 0 by one subtraction") {
  const Tensor x = Tensor::of<double>({3, 2}, {1, 10, 2, 30, 6, 50});
  const Tensor means = mean(x, {0});  // [2]: aligned at the last axis, repeated along the first
  CHECK(same_bits(means, Tensor::of<double>({2}, {3, 30})));
  const Tensor centred = x - means;
  CHECK(same_bits(centred, Tensor::of<double>({3, 2}, {-2, -20, -1, 0, 3, 20})));
  CHECK(same_bits(mean(centred, {0}), zeros({2}, f64)));
}

TEST_CASE("exercise 1: rows need the reduced axis kept, so that it is there to be repeated") {
  const Tensor x = Tensor::of<double>({2, 3}, {1, 2, 3, 10, 20, 60});
  CHECK_THROWS_AS(x - mean(x, {1}), Error);  // [2, 3] with [2]
  const Tensor centred = x - mean(x, {1}, true);
  CHECK(same_bits(centred, Tensor::of<double>({2, 3}, {-1, 0, 1, -20, -10, 30})));
}
