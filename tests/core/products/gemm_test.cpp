// Chapter 8. Tests of matrix products: their ways, sizes, equal bits for any threads. Tiles are tested in
// own_products_test.cpp, precision and NaN in tests/promises/gemm_test.cpp.
#include "core/products/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>

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
