// Chapter 6. Rotary positions: the score of two vectors stays when both move on; one position at a time gives the same
// rows.
#include "nn/attention/rotary.h"

#include <doctest/doctest.h>

#include "tests/nn/compare.h"

using namespace orrery;
using nn::Rotary;

TEST_CASE("pair i at position pos is turned by pos / 10000^(2i / d_k)") {
  const Rotary map(8, 4);
  const Tensor y = map.queries(constant(Tensor::of<double>({1, 1, 1, 4}, {1, 0, 0, 1})), 3).value();
  CHECK(std::abs(y(0, 0, 0, 0) - std::cos(3.0)) < 1e-15);  // (1, 0), i = 0
  CHECK(std::abs(y(0, 0, 0, 2) - std::sin(3.0)) < 1e-15);
  CHECK(std::abs(y(0, 0, 0, 1) + std::sin(0.03)) < 1e-15);  // (0, 1), i = 1
  CHECK(std::abs(y(0, 0, 0, 3) - std::cos(0.03)) < 1e-15);
}

TEST_CASE("scores stay when all positions move on, and lengths stay") {
  const Rotary map(60, 6);
  Rng rng(1);
  const Tensor q = randn({1, 5, 2, 6}, rng, f64), k = randn({1, 5, 2, 6}, rng, f64);
  const auto scores = [&](i64 first) {
    const Tensor Q = permute(map.queries(constant(q), first).value(), {0, 2, 1, 3});
    const Tensor K = permute(map.keys(constant(k), first).value(), {0, 2, 1, 3});
    return matmul(Q, K, Trans::b);
  };
  CHECK(distance(scores(0), scores(50)) < 1e-13);
  const Tensor still = matmul(permute(q, {0, 2, 1, 3}), permute(k, {0, 2, 1, 3}), Trans::b);
  CHECK(distance(scores(0), still) > 0.1);
  CHECK(std::abs(sum_of_squares(map.queries(constant(q), 7).value()) - sum_of_squares(q)) < 1e-12);
}

TEST_CASE("rows that come one at a time are those of all at once") {
  const Rotary map = Rotary(5, 4).clone();
  Rng rng(2);
  const Tensor q = randn({2, 5, 3, 4}, rng);
  const Tensor all = map.queries(constant(q), 0).value();
  for (i64 i = 0; i < 5; ++i)
    CHECK(same_bits(map.queries(constant(slice(q, 1, i, i + 1)), i).value(), slice(all, 1, i, i + 1)));
}

TEST_CASE("positions beyond the last, and heads of an odd size, are errors") {
  const Variable q = constant(zeros({1, 2, 1, 4}));
  CHECK_THROWS_WITH_AS(Rotary(5, 4).queries(q, 4), "rotary: a sequence has 6 positions, but max_len is 5", Error);
  CHECK_THROWS_WITH_AS(Rotary(5, 3), "rotary: needs an even d_k, got 3", Error);
}
