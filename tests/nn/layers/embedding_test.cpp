// Chapter 5. Embedding: rows, gradients of repeated ids, errors.
#include "nn/layers/embedding.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"

using namespace orrery;

TEST_CASE("each id becomes its row") {
  Rng rng(4);
  nn::Embedding layer(6, 3, rng);
  const Variable y = layer(Tensor::of<i32>({2, 2}, {5, 0, 1, 5}));
  REQUIRE(y.shape() == Shape{2, 2, 3});
  for (i64 i = 0; i < 3; ++i) {
    CHECK(y.value().at(i) == layer.weight.value().at(5 * 3 + i));
    CHECK(y.value().at(6 + i) == layer.weight.value().at(3 + i));
  }
  backward(sum(y));
  CHECK(layer.weight.gradient().at(5 * 3) == 2);
  CHECK(layer.weight.gradient().at(2 * 3) == 0);
}

TEST_CASE("an id out of range is named") {
  Rng rng(4);
  nn::Embedding layer(6, 3, rng);
  CHECK_THROWS_WITH_AS(layer(Tensor::of<i32>({1, 2}, {5, 6})), doctest::Contains("id 6 at position 1"), Error);
  CHECK_THROWS_AS(layer(Tensor::of<i32>({1, 1}, {-1})), Error);
}
