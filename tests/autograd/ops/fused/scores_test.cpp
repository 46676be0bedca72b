// Chapter 8. Kernels of attention on transposed scores, query by query against their definitions.
#include "autograd/ops/fused/scores.h"

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

// Each query sees the keys below its limit.
SeenKeys seen_below(const PerQuery<i32>& limit) {
  SeenKeys seen;
  seen.first.fill(0);
  seen.limit = limit;
  return seen;
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
      PerQuery<i32> limit{};
      for (i64 i = 0; i < 48; ++i) limit[static_cast<size_t>(i)] = static_cast<i32>(i * 7 % (keys + 1));
      const ScoreTable<T> before = S;
      softmax_columns(S.scores(), 0, seen_below(limit));
      for (i64 i = 0; i < S.stride; ++i) {
        const std::vector<double> expected =
            i < 48 ? softmax_of(before, i, limit[static_cast<size_t>(i)]) : std::vector<double>();
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

TEST_CASE("a tile knows what its queries see together, each by itself, and all of them") {
  const SeenKeys window = SeenKeys::of(Mask::window(2, 1), 0, 3, 6, 9, 9);
  CHECK(window.any_query.first == 1);
  CHECK(window.any_query.limit == 7);
  CHECK(window.every_query.first == 3);
  CHECK(window.every_query.limit == 5);
  CHECK(window.first[1] == 2);
  CHECK(window.limit[1] == 6);
  CHECK(window.limit[3] == 0);  // no query
  // The second query sees less than the first; the third nothing.
  const Mask shrinking = Mask::padding(Tensor::of<i32>({1}, {4})) & Mask::window(3, 0);
  const SeenKeys seen = SeenKeys::of(shrinking, 0, 5, 8, 8, 8);
  CHECK(seen.any_query.first == 2);
  CHECK(seen.any_query.limit == 4);
  CHECK(seen.first[1] == 3);
  CHECK(seen.first[2] == seen.limit[2]);
  CHECK(SeenKeys::of(shrinking, 0, 7, 8, 8, 8).any_query.count() == 0);
}

TEST_CASE("softmax over keys from a first one on hides what lies before a query's window") {
  ScoreTable<double> S(4, 8, 0, 3);
  const ScoreTable<double> before = S;
  const SeenKeys seen = SeenKeys::of(Mask::window(1, 1), 0, 4, 6, 9, 9);  // keys 3, 4, 5 and 4, 5, 6
  softmax_columns(S.scores(), 3, seen);
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
  PerQuery<i32> limit;
  limit.fill(3);
  limit[4] = 2;
  softmax_columns(S.scores(), 0, seen_below(limit));
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
  sum.fill(-1);
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
