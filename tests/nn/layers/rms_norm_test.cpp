// Chapter 5. RmsNorm against values computed by hand.
#include "nn/layers/rms_norm.h"

#include <doctest/doctest.h>

#include "tests/nn/compare.h"

using namespace orrery;

TEST_CASE("RmsNorm is x / rms(x) * weight, row by row") {
  nn::RmsNorm norm(4, 0);
  norm.weight = parameter(Tensor::of<double>({4}, {1, 10, 100, -1}));
  const Tensor x = Tensor::of<double>({2, 4}, {3, 4, 0, 0, 1, -1, 1, -1});  // their rms: 2.5 and 1
  CHECK(distance(norm(constant(x)).value(), Tensor::of<double>({2, 4}, {1.2, 16, 0, 0, 1, -10, 100, 1})) < 1e-13);
}

TEST_CASE("a new RmsNorm has one weight of 1 per column, and keeps the direction of a vector") {
  const nn::RmsNorm norm(4);
  const Tensor y = norm(constant(Tensor::of<float>({1, 4}, {3e4F, 4e4F, 0, 0}))).value();
  CHECK(distance(y, Tensor::of<float>({1, 4}, {1.2F, 1.6F, 0, 0})) < 1e-6);
  CHECK(nn::RmsNorm(4).parameter_count() == 4);
}
