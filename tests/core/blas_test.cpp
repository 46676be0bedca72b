// Chapter 8. Tests of matrix products: tiles, sizes, equal bits for any threads, the guard's rule. Precision and NaN
// are in tests/promises/gemm_test.cpp.
#include "core/blas.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor_ops.h"
#include "tests/core/products.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::products;
using namespace orrery::small;

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
  CHECK(error_of([&] {
          gemm<float>({memory.data(), 2, 3, 2}, mat(3, 4), mat(2, 4));
        }) == "gemm: rows overlap: strides 2, 4, 4 for rows of 3, 4, 4 elements");
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
