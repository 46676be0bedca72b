// Chapter 8. Tests of matrix products: their ways, tiles, sizes, equal bits for any threads. Precision and NaN are in
// tests/promises/gemm_test.cpp.
#include "core/products/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/products/blas.h"
#include "core/products/small_product.h"
#include "core/products/thin_product.h"
#include "core/tensor_ops.h"
#include "tests/core/products.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::products;
using namespace orrery::small;

TEST_CASE("products of several tiles agree with a triple loop") {
  const Threads scope(2);
  Rng rng(2);
  for (const Trans trans : every_trans) {
    for (const auto& [m, n] : {std::pair<i64, i64>{450, 37}, {37, 450}, {900, 20}, {211, 211}}) {
      const Case s{1, m, n, 61, 3, 0, 5, trans, trans == Trans::a};
      CHECK(gemm_tiles(m, n, 61, trans) >= 2);
      CHECK(error_of_case<float>(s, rng, false) <= 2e-6 * std::sqrt(62.0));
    }
  }
}

TEST_CASE("the way of a product: few rows of A B^T are thin, the rest packed; or BLAS computes all") {
  CHECK(gemm_way(1, Trans::b) == GemmWay::thin);
  CHECK(gemm_way(thin_rows, Trans::b) == GemmWay::thin);
  CHECK(gemm_way(thin_rows + 1, Trans::b) == GemmWay::packed);
  CHECK(gemm_way(thin_rows, Trans::none) == GemmWay::packed);
  CHECK(gemm_way(thin_rows, Trans::both) == GemmWay::packed);
  CHECK(gemm_tiles(2, 4096, 512, Trans::b) == thin_tiles(4096, 512));
  CHECK_FALSE(uses_blas());
  const UseBlas by_blas;
  CHECK(uses_blas());
  for (const Trans trans : every_trans) CHECK(gemm_way(1, trans) == GemmWay::blas);
  CHECK(gemm_tiles(2, 4096, 512, Trans::b) == blas_tiles(2, 4096, 512));
}

TEST_CASE("bits of products do not depend on the threads, also of those by BLAS") {
  Rng rng(3);
  for (const auto& [m, n, k] :
       {std::array<i64, 3>{1, 700, 300}, {700, 1, 300}, {257, 259, 131}, {64, 1000, 64}, {1000, 96, 33}}) {
    const Tensor a = randn({m, k}, rng), b = randn({k, n}, rng), a_t = randn({k, m}, rng), b_t = randn({n, k}, rng);
    CHECK(same_for_any_threads([&] { return matmul(a, b); }));
    CHECK(same_for_any_threads([&] { return matmul(a_t, b, Trans::a); }));
    CHECK(same_for_any_threads([&] { return matmul(a, b_t, Trans::b); }));
    CHECK(same_for_any_threads([&] { return matmul(a_t.to(f64), b_t.to(f64), Trans::both); }));
    const UseBlas by_blas;
    CHECK(same_for_any_threads([&] { return matmul(a, b); }));
    CHECK(same_for_any_threads([&] { return matmul(a, b_t, Trans::b); }));
  }
}

TEST_CASE("a thin product has the bits of its rows, whether it replaces or is added to what is there") {
  Rng rng(9);
  const Tensor x = randn({3, 700}, rng), W = randn({50, 700}, rng), y = matmul(x, W, Trans::b);
  for (i64 row = 0; row < 3; ++row) CHECK(same_bits(matmul(x.rows(row, row + 1), W, Trans::b), y.rows(row, row + 1)));
  Tensor sum = zeros({3, 50});
  matmul_into(sum, x, W, Trans::b, true);
  CHECK(same_bits(sum, y));
  matmul_into(sum, x, W, Trans::b, true);
  CHECK(same_bits(sum, y * 2.0));
}

TEST_CASE("a product inside a task is small or thin, with their bits, and adds to c if told to") {
  Rng rng(4);
  for (const auto& [m, n, k] : {std::array<i64, 3>{1, 9, 33}, {20, 17, 64}, {7, 5, 0}, {0, 4, 4}}) {
    const Tensor a = randn({m, k}, rng), a_t = randn({k, m}, rng), b = randn({k, n}, rng), b_t = randn({n, k}, rng);
    const Mat<const float> A(a.data<float>(), m, k), A_t(a_t.data<float>(), k, m), B(b.data<float>(), k, n),
        B_t(b_t.data<float>(), n, k);
    for (const bool accumulate : {false, true}) {
      const float start = accumulate ? 3.0F : 0.0F;
      const auto c_of = [&, m = m, n = n](const auto& product) {
        Tensor c = full({m, n}, 3.0);
        product(Mat<float>(c.write<float>(), m, n));
        return c;
      };
      const auto with_trans = [&](const Mat<const float>& left, const Mat<const float>& right, Trans trans) {
        return c_of([&](const Mat<float>& c) { gemm_in_task<float>(left, right, c, trans, accumulate); });
      };
      CHECK(same_bits(with_trans(A, B, Trans::none), c_of([&, k = k](const Mat<float>& c) {
                        small_product<float>({A.data, k, 1}, B, c, accumulate);
                      })));
      CHECK(same_bits(with_trans(A_t, B, Trans::a), c_of([&, m = m](const Mat<float>& c) {
                        small_product<float>({A_t.data, 1, m}, B, c, accumulate);
                      })));
      CHECK(same_bits(with_trans(A, B_t, Trans::b), c_of([&, m = m, n = n](const Mat<float>& c) {
                        std::fill_n(c.data, m * n, start);
                        add_thin_product<float>(A, B_t, c);
                      })));
    }
  }
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
  CHECK(error_of([&] {
          gemm<float>(mat(2, 3), {memory.data(), 3, 4, 3}, mat(2, 4));
        }) == "gemm: rows overlap: strides 3, 3, 4 for rows of 3, 4, 4 elements");
  CHECK(error_of([&] {
          gemm<float>(mat(2, 3), mat(3, 4), {memory.data(), 2, 4, 3});
        }) == "gemm: rows overlap: strides 3, 4, 3 for rows of 3, 4, 4 elements");
}

namespace {

// One product, each of whose elements starts as 10 and is doubled when it is complete.
void check_filled_and_finished(i64 m, i64 n, i64 k) {
  Rng rng(6);
  const Tensor a = randn({m, k}, rng), b = randn({k, n}, rng);
  const i64 stride = n + 3;
  Tensor c = full({m, stride}, 777.0);
  float* at = c.write<float>();
  std::vector<int> filled(static_cast<size_t>(m * n)), finished = filled;
  const auto each = [n](const Tile& t, const auto& f) {
    for (i64 i = t.row; i < t.row_end; ++i)
      for (i64 j = t.column; j < t.column_end; ++j) f(i, j, static_cast<size_t>(i * n + j));
  };
  gemm<float>(
      {a.data<float>(), m, k}, {b.data<float>(), k, n}, {at, m, n, stride}, Trans::none,
      [&](const Tile& tile) {
        each(tile, [&](i64 i, i64 j, size_t place) {
          ++filled[place];
          at[i * stride + j] = 10;
        });
        CHECK(tile.column % 16 == 0);  // where whole blocks of dropout's decisions begin
      },
      [&](const Tile& tile) {
        each(tile, [&](i64 i, i64 j, size_t place) {
          ++finished[place];
          at[i * stride + j] *= 2;
        });
      });
  CHECK(std::count(filled.begin(), filled.end(), 1) == m * n);
  CHECK(std::count(finished.begin(), finished.end(), 1) == m * n);
  const Tensor product = matmul(a, b);
  double worst = 0;
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      worst = small::worse(worst, std::fabs(c.at(i * stride + j) - 2 * (10 + product.at(i * n + j))));
    }
  CHECK(worst <= 1e-3);
  for (i64 i = 0; i < m; ++i) CHECK(c.at(i * stride + n) == 777);
}

}  // namespace

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
      check_filled_and_finished(m, n, k);
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
