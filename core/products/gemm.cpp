// Chapter 8. Which way each matrix product takes.
#include "core/products/gemm.h"

#include <algorithm>
#include <cassert>

#include "core/products/blas.h"
#include "core/products/packed_product.h"
#include "core/products/pairs.h"
#include "core/products/small_product.h"
#include "core/products/thin_product.h"

namespace orrery::kernels {
namespace {

struct CheckedSizes {
  i64 m, n, k;
};

template <class T>
CheckedSizes checked_sizes(const Mat<const T>& a, const Mat<const T>& b, const Mat<T>& c, Trans trans) {
  const bool ta = transposes_a(trans), tb = transposes_b(trans);
  const i64 m = ta ? a.cols : a.rows, k = ta ? a.rows : a.cols, n = tb ? b.rows : b.cols, k_b = tb ? b.cols : b.rows;
  check(k == k_b, "gemm", "inner sizes differ (", k, " != ", k_b, ")");
  check(c.rows == m && c.cols == n, "gemm", "the result is ", c.rows, " x ", c.cols, ", needs ", m, " x ", n);
  check(a.stride >= a.cols && b.stride >= b.cols && c.stride >= c.cols, "gemm", "rows overlap: strides ", a.stride,
        ", ", b.stride, ", ", c.stride, " for rows of ", a.cols, ", ", b.cols, ", ", c.cols, " elements");
  constexpr i64 limit = (i64{1} << 31) - 1;  // BLAS counts in int
  check(std::max({m, n, k, a.stride, b.stride, c.stride}) <= limit, "gemm", "a size exceeds ", limit);
  return {m, n, k};
}

// How the factors of a product are read. Here alone it is decided whether they are rounded.
template <class T> Factors factors_of() {
  return std::is_same_v<T, float> && uses_bf16() ? Factors::bf16 : Factors::exact;
}

template <class T>
void product(const Mat<const T>& a, const Mat<const T>& b, const Mat<T>& c, Trans trans, bool accumulate,
             const TileWork& fill, const TileWork& finish) {
  const CheckedSizes s = checked_sizes<T>(a, b, c, trans);
  if (s.m == 0 || s.n == 0) return;
  switch (gemm_way(s.m, trans)) {
    case GemmWay::thin: return thin_product<T>(a, b, c, accumulate, fill, finish, factors_of<T>());
    case GemmWay::packed: return packed_product<T>(a, b, c, trans, accumulate, fill, finish, factors_of<T>());
    case GemmWay::blas: return blas_product<T>(a, b, c, trans, accumulate, fill, finish);
  }
}

template <class T>
void exact_in_task(const Mat<const T>& a, const Mat<const T>& b, const Mat<T>& c, Trans trans, bool accumulate) {
  if (trans == Trans::b) {
    if (!accumulate) set_to_zero(c);
    return add_thin_product<T>(a, b, c);
  }
  small_product<T>(left_factor(a, trans), b, c, accumulate);
}

}  // namespace

GemmWay gemm_way(i64 m, Trans trans) {
  if (uses_blas()) return GemmWay::blas;
  return runs_thin(m, trans) ? GemmWay::thin : GemmWay::packed;
}

i64 gemm_tiles(i64 m, i64 n, i64 k, Trans trans) {
  if (m == 0 || n == 0) return 0;
  switch (gemm_way(m, trans)) {
    case GemmWay::thin: return thin_tiles(n, k);
    case GemmWay::packed: return packed_tiles(m, n, k);
    default: return blas_tiles(m, n, k);
  }
}

template <class T> void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate) {
  product<T>(a, b, c, trans, accumulate, nullptr, nullptr);
}

template <class T>
void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, const TileWork& fill, const TileWork& finish) {
  product<T>(a, b, c, trans, false, fill, finish);
}

template <class T> void gemm_in_task(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate) {
  assert(trans != Trans::both && c.rows == (trans == Trans::a ? a.cols : a.rows));
  assert((trans == Trans::a ? a.rows : a.cols) == (trans == Trans::b ? b.cols : b.rows));
  assert(c.cols == (trans == Trans::b ? b.rows : b.cols));
  product_in_task<T>(factors_of<T>(), a, b, c, trans, accumulate,
                     [=](const auto& left, const auto& right, const auto& part, bool adds) {
                       exact_in_task<T>(left, right, part, trans, adds);
                     });
}

template <class T>
void gemm_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c, Trans trans,
                bool accumulate) {
  const CheckedSizes s = checked_sizes<T>(a.first, b.first, c.first, trans);
  if (s.m == 0 || s.n == 0) return;
  if (uses_blas()) return blas_batch<T>(count, a, b, c, trans, accumulate);
  packed_batch<T>(count, a, b, c, trans, accumulate, factors_of<T>());
}

template void gemm(Mat<const float>, Mat<const float>, Mat<float>, Trans, bool);
template void gemm(Mat<const double>, Mat<const double>, Mat<double>, Trans, bool);
template void gemm(Mat<const float>, Mat<const float>, Mat<float>, Trans, const TileWork&, const TileWork&);
template void gemm(Mat<const double>, Mat<const double>, Mat<double>, Trans, const TileWork&, const TileWork&);
template void gemm_in_task(Mat<const float>, Mat<const float>, Mat<float>, Trans, bool);
template void gemm_in_task(Mat<const double>, Mat<const double>, Mat<double>, Trans, bool);
template void gemm_batch(i64, const MatBatch<const float>&, const MatBatch<const float>&, const MatBatch<float>&, Trans,
                         bool);
template void gemm_batch(i64, const MatBatch<const double>&, const MatBatch<const double>&, const MatBatch<double>&,
                         Trans, bool);

}  // namespace orrery::kernels

namespace orrery {
namespace {

bool by_blas = false;
bool to_bf16 = false;

void check_compatible(bool blas, bool bf16) {
  check(!blas || !bf16, "products", "OpenBLAS computes them in f32; with bf16, the library has to");
}

}  // namespace

void use_blas(bool use) {
  check_compatible(use, to_bf16);
  by_blas = use;
}
bool uses_blas() { return by_blas; }
const char* products_name(bool by_blas) { return by_blas ? "blas" : "own"; }

void use_bf16(bool use) {
  check_compatible(by_blas, use);
  if (use) kernels::bf16_kernel();  // chosen here, since later products may be tasks
  to_bf16 = use;
}
bool uses_bf16() { return to_bf16; }
const char* precision_name(bool bf16) { return bf16 ? "bf16" : "f32"; }

std::string bf16_arithmetic() {
  const kernels::Bf16Kernel& used = kernels::bf16_kernel();
  const std::string name = used.kernel ? used.kernel->name : "f32 arithmetic";
  return used.wrong.empty() ? name : name + ", since " + used.wrong + " gives wrong products here";
}

void use_products(const ProductOptions& products) {
  check_compatible(products.by_blas, products.bf16);
  by_blas = products.by_blas;
  use_bf16(products.bf16);
}

}  // namespace orrery
