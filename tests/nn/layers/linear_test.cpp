// Chapter 5. Linear against loops, and its errors.
#include "nn/layers/linear.h"

#include <doctest/doctest.h>

#include "tests/nn/compare.h"

using namespace orrery;

TEST_CASE("y = x W^T + b for any leading axes") {
  Rng rng(2);
  nn::Linear layer(5, 3, rng);
  to(layer, f64);
  const Tensor x = randn({2, 4, 5}, rng, f64);
  const Tensor y = layer(constant(x)).value();
  CHECK(y.shape() == Shape{2, 4, 3});
  CHECK(distance(y, naive_linear(x, layer.weight.value(), layer.bias.value())) < 1e-14);
  CHECK(layer(constant(x.reshape({8, 5}))).shape() == Shape{8, 3});
  CHECK(layer.parameter_count() == 18);
}

TEST_CASE("without bias there is no such parameter") {
  Rng rng(2);
  nn::Linear layer(5, 3, rng, {.bias = false});
  CHECK(layer.parameter_count() == 15);
  CHECK(distance(layer(constant(zeros({1, 5}))).value(), zeros({1, 3})) == 0);
}

TEST_CASE("an error names the parameter") {
  Rng rng(2);
  nn::Linear layer(5, 3, rng);
  layer.parameters();
  CHECK_THROWS_WITH_AS(layer(constant(zeros({2, 4}))), doctest::Contains("from parameter weight"), Error);
  CHECK_THROWS_AS(layer(constant(zeros({2, 5}, f64))), Error);
}
