// Chapter 6. Normalised queries and keys: scores are cosines, times one learned number.
#include "nn/attention/query_key_norm.h"

#include <doctest/doctest.h>

#include "nn/attention/attention.h"
#include "nn/attention/rotary.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::QueryKeyNorm;

TEST_CASE("a score is g times the cosine of query and key, after the division by sqrt(d_k)") {
  QueryKeyNorm map(64);
  to(map, f64);
  CHECK(std::abs(map.g.value().at(0) - std::log2(64.0 * 64 - 64)) < 1e-6);
  Rng rng(1);
  const Tensor q = randn({1, 4, 1, 8}, rng, f64), k = randn({1, 4, 1, 8}, rng, f64);
  const Tensor Q = map.queries(constant(q), 0).value(), K = map.keys(constant(k), 0).value();
  const auto product = [](const Tensor& a, i64 i, const Tensor& b, i64 j) {
    double sum = 0;
    for (i64 c = 0; c < 8; ++c) sum += a(0, i, 0, c) * b(0, j, 0, c);
    return sum;
  };
  for (i64 i = 0; i < 4; ++i)
    for (i64 j = 0; j < 4; ++j) {
      const double cosine = product(q, i, k, j) / std::sqrt(product(q, i, q, i) * product(k, j, k, j));
      CHECK(std::abs(product(Q, i, K, j) / std::sqrt(8.0) - map.g.value().at(0) * cosine) < 1e-4);  // eps of rms_norm
    }
}

TEST_CASE("queries of any size give the same attention") {
  Rng rng(2);
  nn::MultiHeadAttention attention(8, 2, rng);
  attention.query_key_map = QueryKeyNorm(16, nn::Rotary(16, 4));
  to(attention, f64);
  nn::Pass pass = nn::Pass::inference();
  const Variable x = constant(randn({2, 5, 8}, rng, f64));
  const Tensor before = attention(x, Mask::causal(), pass).value();
  Tensor weight = attention.in_proj.weight.mutable_value().rows(0, 16);  // of queries and keys
  scale_in_place(weight, 1000.0);
  CHECK(distance(attention(x, Mask::causal(), pass).value(), before) < 1e-4);
}

TEST_CASE("a clone has a number of its own, and the same map before the norm") {
  QueryKeyNorm map(16, nn::Rotary(16, 4));
  fill(map.g.mutable_value(), 3);
  QueryKeyNorm copy = map.clone();
  Rng rng(3);
  const Variable q = constant(randn({1, 3, 2, 4}, rng));
  CHECK(same_bits(copy.queries(q, 5).value(), map.queries(q, 5).value()));
  CHECK(same_bits(copy.keys(q, 5).value(), map.keys(q, 5).value()));
  fill(copy.g.mutable_value(), 4);
  CHECK(map.g.value().at(0) == 3);
  CHECK(QueryKeyNorm(1).g.value().at(0) == 1);  // log2(2^2 - 2): a length of 1 counts as 2
}
