// Chapter 8. Matrix products: C = A B, or C += A B. All of them are called through this header.
//
// There are four ways to compute a product:
//   packed     most products of a Transformer's layers (core/products/packed_product.h)
//   thin       A B^T with few rows of A: a model that writes token by token (core/products/thin_product.h)
//   small      the products of a single attention head (core/products/small_product.h)
//   BLAS       all of the first two kinds, if `use_blas` was called: the reference to test and measure against
// `gemm` shares one product among threads, and picks one of the first two by its rows and by which factors are
// transposed.
// `gemm_in_task` computes a product inside a task of a parallel loop, on the thread of that task; it is small or thin.
// Factors in bf16 have kernels of their own where the CPU has instructions for them (core/products/pairs.h).
// Whichever way is taken, the bits are the same for any number of threads. Speeds: apps/measure/bench/README.md.
// Read next: autograd/ops/fused/linear/linear.cpp
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>

#include "core/dtype.h"

namespace orrery {

/// Which factors of a product are transposed.
enum class Trans { none, a, b, both };

namespace kernels {

/// A matrix in memory that somebody else owns: element (i, j) is data[i * stride + j]. T is const if the matrix is only
/// read.
template <class T> struct Mat {
  T* data;
  i64 rows, cols;
  i64 stride;  ///< elements from one row to the next (BLAS: the leading dimension), at least `cols`

  Mat(T* data, i64 rows, i64 cols, i64 stride) : data(data), rows(rows), cols(cols), stride(stride) {}
  Mat(T* data, i64 rows, i64 cols) : Mat(data, rows, cols, cols) {}
  operator Mat<const T>() const { return {data, rows, cols, stride}; }
};

/// Sets every element to 0.
template <class T> static void set_to_zero(const Mat<T>& c) {
  for (i64 i = 0; i < c.rows; ++i) std::fill_n(c.data + i * c.stride, c.cols, T{0});
}

constexpr bool transposes_a(Trans trans) { return trans == Trans::a || trans == Trans::both; }
constexpr bool transposes_b(Trans trans) { return trans == Trans::b || trans == Trans::both; }
/// The columns of op(A).
template <class T> constexpr i64 inner_size(const Mat<T>& a, Trans trans) {
  return transposes_a(trans) ? a.rows : a.cols;
}

/// Matrices of the same size, each `step` elements after the one before.
template <class T> struct MatBatch {
  Mat<T> first;
  i64 step;
  Mat<T> operator[](i64 i) const { return {first.data + i * step, first.rows, first.cols, first.stride}; }
};

/// Rows [row, row_end) and columns [column, column_end) of a matrix, usually a product's result.
struct Tile {
  i64 row, row_end, column, column_end;
};
/// That tile of c as a matrix of its own.
template <class T> static Mat<T> part_of(const Mat<T>& c, const Tile& tile) {
  return {c.data + tile.row * c.stride + tile.column, tile.row_end - tile.row, tile.column_end - tile.column, c.stride};
}

/// Work on a tile of c, done by the thread that computes the tile, right before or after. Must not throw, allocate or
/// compute products.
/// It refers to a function object that somebody else owns and that must outlive the product. A std::function would own
/// it, and so allocate memory for every product.
class TileWork {
 public:
  TileWork(std::nullptr_t = nullptr) {}
  template <class Work>
  requires std::invocable<const Work&, const Tile&> TileWork(const Work& work)
      : work_(&work), call_([](const void* object, const Tile& tile) { (*static_cast<const Work*>(object))(tile); }) {}
  explicit operator bool() const { return work_ != nullptr; }
  void operator()(const Tile& tile) const { call_(work_, tile); }

 private:
  const void* work_ = nullptr;
  void (*call_)(const void*, const Tile&) = nullptr;
};

/// c = op(a) op(b), or c += op(a) op(b) with `accumulate`; op transposes as `trans` says. T is float or double; sizes
/// of 0 are allowed; c must not share memory with a or b. Errors: sizes that do not fit; sizes of 2^31 and more.
template <class T>
void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans = Trans::none, bool accumulate = false);

/// The same product with work on each tile of c; the tiles cover c exactly once. `fill` writes what the product is
/// added to, such as a bias; `finish` gets the tile when it is complete. Each may be null. Tiles begin at multiples of
/// 8 columns.
template <class T>
void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, const TileWork& fill, const TileWork& finish);

/// The same product inside a task of a parallel loop, on the thread that calls. Each element of c is a function of its
/// row of op(a) and its column of op(b) alone; in bf16, the order of its sum depends on the sizes, too. Not for
/// Trans::both. Sizes must fit: a task must not throw.
template <class T>
void gemm_in_task(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans = Trans::none, bool accumulate = false);

/// c[i] = op(a[i]) op(b[i]), or c[i] += ... with `accumulate`, for `count` products in parallel; never by the
/// way of few rows, so bits may differ from those of `gemm`. A step of 0 gives all products the same factor. Errors:
/// those of `gemm`.
template <class T>
void gemm_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c,
                Trans trans = Trans::none, bool accumulate = false);

/// The way that `gemm` takes for a product with m rows. Frozen, since ways differ in the bits of a result: another rule
/// would change those of all trainings. So are the chunks of sums and of rows (core/kernels/reduce.h), and the tiles of
/// attention (autograd/ops/fused/attention/scores.h).
enum class GemmWay { thin, packed, blas };
GemmWay gemm_way(i64 m, Trans trans);

/// Tiles that threads share when `gemm` computes that product. TileWork is called for parts of them.
i64 gemm_tiles(i64 m, i64 n, i64 k, Trans trans);

}  // namespace kernels

/// Whether BLAS computes all products of `gemm` and `gemm_batch`; not unless set. Bits then depend on its kernels.
void use_blas(bool use);
bool uses_blas();
/// Who computes products, as `--products` and the files of trainings name it.
const char* products_name(bool by_blas);

}  // namespace orrery
