// Chapter 8. Kernels of attention on transposed scores, query by query against their definitions.
#include "autograd/ops/fused/attention/scores.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/random.h"

using namespace orrery;
using namespace orrery::kernels;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

// Scores of `keys` keys for `width` queries, `gap` numbers between the rows.
template <class T>
struct ScoreTable {
  i64 keys, width, stride;
  std::vector<T> numbers;
  ScoreTable(i64 keys, i64 width, i64 gap, u64 seed) : keys(keys), width(width), stride(width + gap) {
    Rng rng(seed);
    for (i64 i = 0; i < keys * stride; ++i) numbers.push_back(static_cast<T>(3 * rng.normal()));
  }
  Scores<T> scores() { return {numbers.data(), keys, width, stride}; }
  double at(i64 key, i64 query) const {
    return static_cast<double>(numbers[static_cast<size_t>(key * stride + query)]);
  }
};

// The softmax of one query's scores over its first `limit` keys.
template <class T>
std::vector<double> softmax_of(const ScoreTable<T>& S, i64 query, i64 limit) {
  std::vector<double> p(static_cast<size_t>(S.keys), 0.0);
  double largest = -endless, total = 0;
  for (i64 j = 0; j < limit; ++j) largest = std::max(largest, S.at(j, query));
  for (i64 j = 0; j < limit; ++j) total += p[static_cast<size_t>(j)] = std::exp(S.at(j, query) - largest);
  for (double& value : p) value = total == 0 ? 0 : value / total;
  return p;
}

// Query i of `queries` sees the first limit(i) of `keys` keys.
template <class Limit>
SeenKeys seen_below(i64 queries, i64 keys, const Limit& limit) {
  Tensor allow = Tensor::empty({queries, keys}, Dtype::i32);
  for (i64 at = 0; at < queries * keys; ++at) allow.write<i32>()[at] = at % keys < limit(at / keys) ? 1 : 0;
  return {Mask::allow(allow), {0, 0, 0, queries, queries, keys}, {0, keys}};
}

std::vector<std::array<i64, 2>> runs_of(const SeenKeys& seen) {
  std::vector<std::array<i64, 2>> runs;
  seen.for_runs([&](KeyRange run) { runs.push_back({run.first, run.limit}); });
  return runs;
}

}  // namespace

TEST_CASE("rows are padded to multiples of 8, and whole tiles not at all") {
  CHECK(padded(0) == 0);
  CHECK(padded(1) == 8);
  CHECK(padded(8) == 8);
  CHECK(padded(9) == 16);
  CHECK(padded(query_tile) == query_tile);
}

TEST_CASE("softmax works down the columns, over the keys that each query may see, and touches no gap") {
  const auto check = [&]<class T>(T, double tolerance) {
    for (const i64 keys : {1, 5, 64, 65, 200}) {
      ScoreTable<T> S(keys, 48, 5, 2);
      const auto limit = [&](i64 i) { return i * 7 % (keys + 1); };
      const ScoreTable<T> before = S;
      softmax_columns(S.scores(), seen_below(48, keys, limit));
      for (i64 i = 0; i < S.stride; ++i) {
        const std::vector<double> expected = i < 48 ? softmax_of(before, i, limit(i)) : std::vector<double>();
        for (i64 j = 0; j < keys; ++j) {
          if (i < 48)
            REQUIRE(std::fabs(S.at(j, i) - expected[static_cast<size_t>(j)]) <= tolerance);
          else
            REQUIRE(S.at(j, i) == before.at(j, i));
        }
      }
    }
  };
  check(float{}, 1e-6);
  check(double{}, 1e-14);
}

TEST_CASE("a tile knows which blocks of 64 keys its queries see, and which need a check") {
  const QuerySpan q{0, 0, 300, 380, 400, 400};
  const auto keys_of = [](const SeenKeys& seen) { return std::array{seen.keys().first, seen.keys().limit}; };
  const SeenKeys causal(Mask::causal(), q, {0, 400});
  CHECK(keys_of(causal) == std::array<i64, 2>{0, 380});
  CHECK(runs_of(causal) == std::vector<std::array<i64, 2>>{{0, 380}});
  std::vector<i64> checked;
  causal.for_blocks({0, 380}, [&](KeyRange keys, const MaskBlock* bits) { checked.push_back(bits ? keys.first : -1); });
  CHECK(checked == std::vector<i64>{-1, -1, -1, -1, 256, 320});
  CHECK(keys_of({Mask::window(30), q, {0, 400}}) == std::array<i64, 2>{270, 400});
  CHECK(keys_of({Mask::window(30), q, {0, 300}}) == std::array<i64, 2>{270, 300});
  CHECK(runs_of({Mask::window(30), q, {0, 200}}).empty());
  const Mask longformer = Mask::window(30) | Mask::global(1);
  CHECK(runs_of({longformer, q, {0, 400}}) == std::vector<std::array<i64, 2>>{{0, 64}, {256, 400}});
  CHECK(runs_of({longformer, q, {100, 400}}) == std::vector<std::array<i64, 2>>{{228, 400}});
  CHECK(runs_of({Mask::padding({0}), q, {0, 400}}).empty());
}

TEST_CASE("softmax over keys from a first one on hides what lies before a query's window") {
  ScoreTable<double> S(4, 8, 0, 3);
  const ScoreTable<double> before = S;
  const SeenKeys seen(Mask::window(1, 1), {0, 0, 4, 6, 9, 9}, {0, 9});  // keys 3, 4, 5 and 4, 5, 6
  softmax_columns(S.scores(), seen);
  for (i64 query = 0; query < 2; ++query) {
    double total = 0;
    for (i64 j = query; j < query + 3; ++j) total += std::exp(before.at(j, query));
    for (i64 j = 0; j < 4; ++j) {
      const bool is_seen = j >= query && j < query + 3;
      CHECK(S.at(j, query) == doctest::Approx(is_seen ? std::exp(before.at(j, query)) / total : 0).epsilon(1e-14));
    }
  }
  for (i64 j = 0; j < 4; ++j) CHECK(S.at(j, 5) == 0);
}

TEST_CASE("softmax skips blocks of keys that no query sees: their rows are neither read nor written") {
  ScoreTable<double> S(300, 8, 0, 4);
  const Mask mask = Mask::window(20) | Mask::global(2);
  const SeenKeys seen(mask, {0, 0, 292, 300, 300, 300}, {0, 300});
  for (size_t at = 64 * 8; at < 256 * 8; ++at) S.numbers[at] = std::nan("");
  const ScoreTable<double> before = S;
  softmax_columns(S.scores(), seen);
  for (i64 query = 0; query < 8; ++query) {
    double total = 0;
    for (i64 j = 0; j < 300; ++j)
      total += mask.allowed(0, 0, 292 + query, j, 300, 300) ? std::exp(before.at(j, query)) : 0;
    for (i64 j = 0; j < 300; ++j) {
      if (j >= 64 && j < 256)
        CHECK(std::isnan(S.at(j, query)));
      else
        CHECK(S.at(j, query) ==
              doctest::Approx(mask.allowed(0, 0, 292 + query, j, 300, 300) ? std::exp(before.at(j, query)) / total : 0)
                  .epsilon(1e-14));
    }
  }
}

TEST_CASE("scores of 1e4 and -infinity give what their limits give; NaN stays in its column") {
  ScoreTable<double> S(3, 16, 0, 2);
  const auto set = [&](i64 query, std::vector<double> column) {
    for (size_t j = 0; j < 3; ++j) S.numbers[j * 16 + static_cast<size_t>(query)] = column[j];
  };
  set(0, {1e4, -1e4, 1e4});
  set(1, {-endless, 0, -endless});
  set(2, {-endless, -endless, -endless});
  set(3, {0, std::nan(""), 0});
  set(4, {0, 0, std::nan("")});  // hidden
  softmax_columns(S.scores(), seen_below(16, 3, [](i64 i) { return i == 4 ? 2 : 3; }));
  const auto column = [&](i64 query) { return std::vector<double>{S.at(0, query), S.at(1, query), S.at(2, query)}; };
  CHECK(column(0) == std::vector<double>{0.5, 0, 0.5});
  CHECK(column(1) == std::vector<double>{0, 1, 0});
  CHECK(column(2) == std::vector<double>{0, 0, 0});
  for (const double p : column(3)) CHECK(std::isnan(p));
  CHECK(column(4) == std::vector<double>{0.5, 0.5, 0});
}

TEST_CASE("a sum over many keys loses fewer digits than one running sum") {
  constexpr i64 keys = 1'000'000;
  PerQuery<float> sum;
  sum.fill(0);
  sum[16] = -1;
  sum_over_keys(keys, 16, sum, [](i64, float* part) {
    for (i64 i = 0; i < 16; ++i) part[i] += 0.1F;
  });
  for (size_t i = 0; i < 16; ++i) CHECK(sum[i] == doctest::Approx(1e5).epsilon(3e-4));
  CHECK(sum[16] == -1);
  float running = 0;
  for (i64 j = 0; j < keys; ++j) running += 0.1F;
  CHECK(std::fabs(running - 1e5F) > 100);  // one running sum loses them
}

TEST_CASE("weights are read back from signed P, and the gradient of the scores follows from dW") {
  // Four queries: kept, dropped, P of 0, and P of 0 that was dropped; dW of the last two is NaN and infinity.
  const std::vector<double> P{0.5, -0.25, 0.0, -0.0}, dW{3, 5, std::nan(""), endless};
  constexpr double kept = 1.25, factor = 0.5;
  std::vector<double> W(4, -1), inner{100, 100, 100, 100}, scaled_dS = dW;
  restore_weights(4, kept, P.data(), dW.data(), W.data(), inner.data());
  CHECK(W == std::vector<double>{0.625, 0, 0, 0});
  CHECK(inner == std::vector<double>{100 + 0.625 * 3, 100, 100, 100});
  const std::vector<double> sums{2, 2, 2, 2};
  score_gradient(4, kept, factor, P.data(), sums.data(), scaled_dS.data());
  CHECK(scaled_dS == std::vector<double>{0.5 * (3 * kept - 2) * factor, 0.25 * (0 - 2) * factor, 0, 0});
}

TEST_CASE("columns are multiplied each by its own factor") {
  std::vector<float> x{1, 2, 3};
  const std::vector<float> factor{2, 0, -1};
  multiply<float>(3, factor.data(), x.data());
  CHECK(x == std::vector<float>{2, 0, -3});
}
