// Chapter 8. Tests of matrix products: against a triple loop, NaN, tiles, equal bits for any threads, the guard's rule.
#include "core/blas.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {

constexpr std::array every_trans{Trans::none, Trans::a, Trans::b, Trans::both};
constexpr double guard_value = 777;  // stands between the rows of a matrix whose stride is larger than its width

// A product with everything about it chosen: sizes, strides, batch.
struct Case {
  i64 batch, m, n, k;
  i64 extra_a, extra_b, extra_c;  // stride minus columns
  Trans trans;
  bool accumulate;

  i64 a_rows() const { return transposes_a(trans) ? k : m; }
  i64 a_cols() const { return transposes_a(trans) ? m : k; }
  i64 b_rows() const { return transposes_b(trans) ? n : k; }
  i64 b_cols() const { return transposes_b(trans) ? k : n; }
  i64 a_step() const { return a_rows() * (a_cols() + extra_a); }
  i64 b_step() const { return b_rows() * (b_cols() + extra_b); }
  i64 c_step() const { return m * (n + extra_c) + 3; }
};

Case random_case(Rng& rng) {
  const auto size = [&] {
    return rng.uniform() < 0.15 ? rng.integer(0, 2) : rng.integer(1, rng.uniform() < 0.1 ? 150 : 40);
  };
  const auto extra = [&] { return rng.uniform() < 0.5 ? 0 : rng.integer(1, 9); };
  return {rng.integer(0, 4),
          size(),
          size(),
          size(),
          extra(),
          extra(),
          extra(),
          every_trans.at(static_cast<size_t>(rng.integer(0, 4))),
          rng.uniform() < 0.5};
}

template <class T>
std::vector<T> random_values(i64 n, Rng& rng) {
  std::vector<T> values(static_cast<size_t>(n));
  for (T& value : values) value = static_cast<T>(2 * rng.uniform() - 1);
  return values;
}

// Element (i, j) of the product number `x` by its definition, in double.
template <class T>
double exact(const Case& s, const std::vector<T>& a, const std::vector<T>& b, i64 x, i64 i, i64 j) {
  const i64 lda = s.a_cols() + s.extra_a, ldb = s.b_cols() + s.extra_b;
  double total = 0;
  for (i64 l = 0; l < s.k; ++l) {
    const i64 at_a = x * s.a_step() + (transposes_a(s.trans) ? l * lda + i : i * lda + l);
    const i64 at_b = x * s.b_step() + (transposes_b(s.trans) ? j * ldb + l : l * ldb + j);
    total += static_cast<double>(a[static_cast<size_t>(at_a)]) * static_cast<double>(b[static_cast<size_t>(at_b)]);
  }
  return total;
}

// The largest error of gemm (one product) or gemm_batch; infinite if an element outside of C was touched.
template <class T>
double error_of_case(const Case& s, Rng& rng, bool batched) {
  const i64 batch = batched ? s.batch : 1;
  const std::vector<T> a = random_values<T>(batch * s.a_step() + 1, rng),
                       b = random_values<T>(batch * s.b_step() + 1, rng);
  std::vector<T> c(static_cast<size_t>(batch * s.c_step() + 1), static_cast<T>(guard_value));
  const i64 ldc = s.n + s.extra_c;
  for (i64 x = 0; x < batch; ++x) {
    for (i64 i = 0; i < s.m; ++i) std::fill_n(c.begin() + x * s.c_step() + i * ldc, s.n, T{2});
  }
  const Mat<const T> ma{a.data(), s.a_rows(), s.a_cols(), s.a_cols() + s.extra_a};
  const Mat<const T> mb{b.data(), s.b_rows(), s.b_cols(), s.b_cols() + s.extra_b};
  const Mat<T> mc{c.data(), s.m, s.n, ldc};
  if (batched)
    gemm_batch<T>(batch, ma, s.a_step(), mb, s.b_step(), mc, s.c_step(), s.trans, s.accumulate);
  else
    gemm<T>(ma, mb, mc, s.trans, s.accumulate);
  double worst = 0;
  std::vector<bool> inside(c.size(), false);
  for (i64 x = 0; x < batch; ++x) {
    for (i64 i = 0; i < s.m; ++i) {
      for (i64 j = 0; j < s.n; ++j) {
        const auto at = static_cast<size_t>(x * s.c_step() + i * ldc + j);
        inside[at] = true;
        const double difference =
            std::abs(static_cast<double>(c[at]) - (exact(s, a, b, x, i, j) + (s.accumulate ? 2 : 0)));
        if (!(difference <= worst)) worst = difference;
      }
    }
  }
  for (size_t i = 0; i < c.size(); ++i) {
    if (!inside[i] && c[i] != static_cast<T>(guard_value)) worst = std::numeric_limits<double>::infinity();
  }
  return worst;
}

}  // namespace

TEST_CASE("random products agree with a triple loop") {
  Rng rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    const Case s = random_case(rng);
    CAPTURE(s.m);
    CAPTURE(s.n);
    CAPTURE(s.k);
    CAPTURE(static_cast<int>(s.trans));
    CHECK(error_of_case<float>(s, rng, trial % 2 == 0) <= 2e-6 * std::sqrt(static_cast<double>(s.k + 1)));
    CHECK(error_of_case<double>(s, rng, trial % 2 == 1) <= 1e-14 * std::sqrt(static_cast<double>(s.k + 1)));
  }
}

TEST_CASE("products of several tiles agree with a triple loop") {
  Rng rng(2);
  for (const Trans trans : every_trans) {
    for (const auto& [m, n] : {std::pair<i64, i64>{450, 37}, {37, 450}, {900, 20}, {211, 211}}) {
      const Case s{1, m, n, 61, 3, 0, 5, trans, trans == Trans::a};
      CHECK(gemm_tiles(m, n, 61) >= 2);
      CHECK(error_of_case<float>(s, rng, false) <= 2e-6 * std::sqrt(62.0));
    }
  }
}

TEST_CASE("tiles follow from the shape alone") {
  CHECK(gemm_tiles(1, 1, 1) == 1);
  CHECK(gemm_tiles(64, 64, 64) == 2);
  CHECK(gemm_tiles(63, 64, 64) == 1);
  CHECK(gemm_tiles(512, 512, 512) == 2);
  CHECK(gemm_tiles(512, 2048, 512) == 4);
  CHECK(gemm_tiles(100'000, 64, 64) == 4);
  CHECK(gemm_tiles(16, 16, 1'000'000) == 1);
  CHECK(gemm_tiles(0, 16, 16) == 1);
}

TEST_CASE("NaN in C is overwritten, NaN in A spreads along its row") {
  for (const auto& [m, n, k] :
       {std::array<i64, 3>{1, 1, 1}, {1, 9, 5}, {9, 1, 5}, {7, 8, 9}, {300, 300, 30}, {4, 4, 0}}) {
    Tensor a = full({m, k}, 1.0), b = full({k, n}, 2.0), c = full({m, n}, std::numeric_limits<double>::quiet_NaN());
    matmul_into(c, a, b, Trans::none, false);
    CHECK(sum(c).item() == static_cast<double>(2 * m * n * k));
    if (k == 0) continue;
    a.write<float>()[(m - 1) * k] = std::numeric_limits<float>::quiet_NaN();
    matmul_into(c, a, b, Trans::none, false);
    i64 spread = 0;
    for (i64 i = 0; i < c.count(); ++i) spread += std::isnan(c.at(i));
    CHECK(spread == n);
    CHECK(std::isnan(c.at((m - 1) * n)));
  }
}

TEST_CASE("NaN times zero is NaN, in either factor") {
  const Tensor zero = zeros({20, 20}), nan = full({20, 20}, std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isnan(matmul(zero, nan).at(0)));
  CHECK(std::isnan(matmul(nan, zero).at(399)));
}

TEST_CASE("without an inner axis a product is zero, or adds nothing") {
  Tensor c = full({5, 6}, 3.0);
  matmul_into(c, full({5, 0}, 1.0), full({0, 6}, 1.0), Trans::none, true);
  CHECK(sum(c).item() == 90);
  matmul_into(c, full({5, 0}, 1.0), full({0, 6}, 1.0), Trans::none, false);
  CHECK(sum(c).item() == 0);
}

TEST_CASE("sizes that do not fit are errors") {
  std::vector<float> memory(100);
  const auto mat = [&](i64 rows, i64 cols) { return Mat<float>{memory.data(), rows, cols}; };
  CHECK(error_of([&] { gemm<float>(mat(2, 3), mat(4, 5), mat(2, 5)); }) == "gemm: inner sizes differ (3 != 4)");
  CHECK(error_of([&] { gemm<float>(mat(2, 3), mat(3, 5), mat(2, 4)); }) == "gemm: the result is 2 x 4, needs 2 x 5");
  CHECK(error_of([&] { gemm<float>(mat(2, i64{1} << 31), mat(i64{1} << 31, 1), mat(2, 1)); }) ==
        "gemm: a size exceeds 2147483647");
}

TEST_CASE("bits of products do not depend on the threads") {
  Rng rng(3);
  for (const auto& [m, n, k] :
       {std::array<i64, 3>{1, 700, 300}, {700, 1, 300}, {257, 259, 131}, {64, 1000, 64}, {1000, 96, 33}}) {
    const Tensor a = randn({m, k}, rng), b = randn({k, n}, rng), a_t = randn({k, m}, rng), b_t = randn({n, k}, rng);
    CHECK(same_for_any_threads([&] { return matmul(a, b); }));
    CHECK(same_for_any_threads([&] { return matmul(a_t, b, Trans::a); }));
    CHECK(same_for_any_threads([&] { return matmul(a, b_t, Trans::b); }));
    CHECK(same_for_any_threads([&] { return matmul(a_t.to(f64), b_t.to(f64), Trans::both); }));
  }
}

TEST_CASE("the rule for an OpenBLAS build and a number of threads") {
  CHECK(blas_action(0, 1) == BlasAction::nothing);  // built without threads: safe with one
  CHECK(blas_action(0, 2) == BlasAction::refuse);
  CHECK(blas_action(0, 64) == BlasAction::refuse);
  CHECK(blas_action(1, 1) == BlasAction::single_thread);  // pthreads
  CHECK(blas_action(1, 8) == BlasAction::single_thread);
  CHECK(blas_action(2, 1) == BlasAction::nothing);  // OpenMP: must never be told
  CHECK(blas_action(2, 8) == BlasAction::nothing);
}

TEST_CASE("the linked OpenBLAS is safe and says what it is") {
  CHECK_NOTHROW(guard_blas());
  const Threads scope(4);
  CHECK_NOTHROW(guard_blas());
  CHECK(threads() == 4);
  const BlasInfo info = blas_info();
  CHECK(info.config.find("OpenBLAS") != std::string::npos);
  CHECK_FALSE(info.kernel.empty());
  CHECK((info.threading == "OpenMP" || info.threading == "pthreads"));
}
