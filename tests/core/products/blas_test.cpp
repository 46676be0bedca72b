// Chapter 8. Tests of matrix products: tiles, sizes, equal bits for any threads, the guard's rule. Precision and NaN
// are in tests/promises/gemm_test.cpp.
#include "core/products/blas.h"

#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>
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
      CHECK(gemm_tiles(m, n, 61, trans) >= 2);
      CHECK(error_of_case<float>(s, rng, false) <= 2e-6 * std::sqrt(62.0));
    }
  }
}

TEST_CASE("tiles follow from the shape alone") {
  CHECK(blas_tiles(1, 1, 1) == 1);
  CHECK(blas_tiles(64, 64, 64) == 2);
  CHECK(blas_tiles(63, 64, 64) == 1);
  CHECK(blas_tiles(512, 512, 512) == 2);
  CHECK(blas_tiles(2048, 512, 512) == 2);  // rows by 1,024
  CHECK(blas_tiles(4096, 512, 512) == 4);
  CHECK(blas_tiles(512, 1024, 512) == 4);  // columns by 256
  CHECK(blas_tiles(512, 2048, 512) == 8);
  CHECK(blas_tiles(100'000, 64, 64) == 8);  // and no more
  CHECK(blas_tiles(16, 16, 1'000'000) == 1);
  CHECK(blas_tiles(0, 16, 16) == 1);
}

TEST_CASE(
    "the least number of tiles is for all products that are cut at all, and shortens the tiles of the larger ones") {
  struct Restored {
    const int before = least_tiles();
    ~Restored() { set_least_tiles(before); }
  } const restored;
  set_least_tiles(4);
  CHECK(least_tiles() == 4);
  CHECK(blas_tiles(64, 64, 64) == 4);
  CHECK(blas_tiles(63, 64, 64) == 1);
  CHECK(blas_tiles(48, 100, 100) == 4);
  CHECK(blas_tiles(32, 32, 1000) == 2);  // of 16 rows
  CHECK(blas_tiles(80, 64, 64) == 3);    // of 32, 32 and 16 rows
  CHECK(blas_tiles(512, 2048, 512) == 16);
  CHECK(error_of([] { set_least_tiles(0); }) == "gemm: the least number of tiles must be from 1 to 64, got 0");
  CHECK(error_of([] { set_least_tiles(65); }) == "gemm: the least number of tiles must be from 1 to 64, got 65");
  CHECK(least_tiles() == 4);
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

TEST_CASE("each element of a product is filled before and finished after, once, whatever the tiles") {
  for (const auto& [m, n, k] : {std::array<i64, 3>{1, 1, 1},
                                {450, 37, 61},
                                {37, 450, 61},
                                {1030, 64, 64},
                                {300, 300, 0},
                                {0, 4, 4},
                                {4, 0, 4},
                                {64, 2000, 100}}) {
    const Shape sizes{m, n, k};
    for (const int count : {1, 3}) {
      CAPTURE(sizes);
      const Threads scope(count);
      Rng rng(6);
      const Tensor a = randn({m, k}, rng), b = randn({k, n}, rng);
      const i64 stride = n + 3;
      Tensor c = full({m, stride}, 777.0);
      float* at = c.write<float>();
      std::vector<int> filled(static_cast<size_t>(m * n)), finished = filled;
      const auto each = [n = n](const Tile& t, const auto& f) {
        for (i64 i = t.row; i < t.row_end; ++i)
          for (i64 j = t.column; j < t.column_end; ++j) f(i, j, static_cast<size_t>(i * n + j));
      };
      gemm<float>(
          {a.data<float>(), m, k}, {b.data<float>(), k, n}, {at, m, n, stride}, Trans::none,
          [&](const Tile& tile) {
            each(tile, [&](i64 i, i64 j, size_t place) { ++filled[place], at[i * stride + j] = 10; });
            CHECK(tile.column % 16 == 0);  // where whole blocks of dropout's decisions begin
          },
          [&](const Tile& tile) {
            each(tile, [&](i64 i, i64 j, size_t place) { ++finished[place], at[i * stride + j] *= 2; });
          });
      CHECK(std::count(filled.begin(), filled.end(), 1) == m * n);
      CHECK(std::count(finished.begin(), finished.end(), 1) == m * n);
      const Tensor product = matmul(a, b);
      double worst = 0;
      for (i64 i = 0; i < m; ++i)
        for (i64 j = 0; j < n; ++j) {
          const double e = std::fabs(c.at(i * stride + j) - 2 * (10 + product.at(i * n + j)));
          if (!(e <= worst)) worst = e;
        }
      CHECK(worst <= 1e-3);
      for (i64 i = 0; i < m; ++i) CHECK(c.at(i * stride + n) == 777);
    }
  }
}

TEST_CASE("finishing alone leaves the product what it is") {
  Rng rng(6);
  const Tensor a = randn({450, 61}, rng), b = randn({61, 37}, rng);
  Tensor c = full({450, 37}, 777.0);
  gemm<float>({a.data<float>(), 450, 61}, {b.data<float>(), 61, 37}, {c.write<float>(), 450, 37}, Trans::none, nullptr,
              [](const Tile&) {});
  CHECK(same_bits(c, matmul(a, b)));
}

TEST_CASE("a product by OpenBLAS alone is the same product") {
  Rng rng(7);
  const Tensor a = randn({61, 45}, rng), b = randn({37, 61}, rng);
  Tensor c = full({45, 37}, 777.0);
  gemm_by_blas<float>({a.data<float>(), 61, 45}, {b.data<float>(), 37, 61}, {c.write<float>(), 45, 37}, Trans::both);
  CHECK(sum_of_squares(c - matmul(a, b, Trans::both)) <= 1e-6);
}

TEST_CASE("a product has the same bits where OpenMP gives a region a single thread, and in a region of the caller's") {
  const Threads scope(2);
  Rng rng(8);
  // Products of BLAS in one tile and in several, and a batch: with two threads OpenBLAS would share each by itself.
  const Tensor a = randn({600, 700}, rng), b = randn({700, 300}, rng);
  const auto product = [&] {
    std::vector<Tensor> all{Tensor::empty({600, 300}), matmul(b, a, Trans::both), matmul(slice(a, 0, 0, 40), b)};
    gemm_batch<float>(2, {a.data<float>(), 300, 700}, 300 * 700, {b.data<float>(), 700, 300}, 0,
                      {all[0].write<float>(), 300, 300}, 300 * 300);
    return all;
  };
  const std::vector<Tensor> usual = product();
  const auto check_same = [&] {
    const std::vector<Tensor> here = product();
    for (size_t i = 0; i < usual.size(); ++i) CHECK(same_bits(here[i], usual[i]));
    Tensor c = Tensor::empty({600, 300});
    gemm_by_blas<float>({a.data<float>(), 600, 700}, {b.data<float>(), 700, 300}, {c.write<float>(), 600, 300});
    CHECK(sum_of_squares(c - matmul(a, b)) <= 1e-4);
  };
  const int levels = omp_get_max_active_levels();
  omp_set_max_active_levels(0);
  CHECK(threads() == 1);
  check_same();
  omp_set_max_active_levels(levels);
  CHECK(threads() == 2);
  parallel_tasks(2, [&](i64 i) {
    if (i == 0) check_same();
  });
}
