// Chapter 8. Matrix products: C = A B, or C += A B. The one door to all of them: what is behind it depends on the
// shape.
//
// BLAS is fastest where each number that it copies into its own layout is used often. Where a product is too small or
// too thin for that, we read the factors where they are. `gemm` picks, by the shape (m, n, k) alone:
//   thin       A B^T with at most 16 rows of A: a model that writes token by token (core/products/thin_product.h)
//   unpacked   most products of a Transformer's layers (core/products/unpacked_product.h)
//   BLAS       all others (core/products/blas.h)
// Whichever it is, the bits are the same for any number of threads. Speeds of all: apps/bench/README.md.
// Read next: autograd/ops/fused/linear.cpp
#pragma once

#include <concepts>
#include <cstddef>

#include "core/dtype.h"

namespace orrery {

/// Which factors of a product are transposed.
enum class Trans { none, a, b, both };

namespace kernels {

/// A matrix in memory somebody else owns: element (i, j) is data[i * stride + j]. T is const for matrices only read.
template <class T>
struct Mat {
  T* data;
  i64 rows, cols;
  i64 stride;  ///< elements from one row to the next (BLAS: the leading dimension), at least `cols`

  Mat(T* data, i64 rows, i64 cols, i64 stride) : data(data), rows(rows), cols(cols), stride(stride) {}
  Mat(T* data, i64 rows, i64 cols) : Mat(data, rows, cols, cols) {}
  operator Mat<const T>() const { return {data, rows, cols, stride}; }
};

constexpr bool transposes_a(Trans trans) { return trans == Trans::a || trans == Trans::both; }
constexpr bool transposes_b(Trans trans) { return trans == Trans::b || trans == Trans::both; }

/// Rows [row, row_end) and columns [column, column_end) of a product's result.
struct Tile {
  i64 row, row_end, column, column_end;
};
/// Work on a tile of c, on the thread that makes it, right before or after. Must not throw or allocate. Refers to a
/// function object that somebody else owns and that outlives the product: std::function would own it, and ask for
/// memory at every product.
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

/// c = op(a) op(b), or c += op(a) op(b) with `accumulate`. T is float or double; sizes of 0 are allowed.
/// Errors: sizes that do not fit; sizes of 2^31 and more.
template <class T>
void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans = Trans::none, bool accumulate = false);

/// The same product with work on each tile of c, which together cover c once: `fill` writes what the product is then
/// added to, such as a bias; `finish` gets the tile when it is complete. Each may be null. Tiles begin at multiples of
/// 8 columns.
template <class T>
void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, const TileWork& fill, const TileWork& finish);

/// `batch` products whose factors and results lie `a_step`, `b_step`, `c_step` elements apart, in parallel over the
/// batch; each is one call of BLAS.
template <class T>
void gemm_batch(i64 batch, Mat<const T> a, i64 a_step, Mat<const T> b, i64 b_step, Mat<T> c, i64 c_step,
                Trans trans = Trans::none, bool accumulate = false);

/// The way that `gemm` takes for a product with an m x n result and inner size k. Frozen, since ways differ in the bits
/// of a result.
enum class GemmWay { thin, unpacked, blas };
GemmWay gemm_way(i64 m, i64 n, i64 k, Trans trans);

/// Tiles that `gemm` cuts that product into.
i64 gemm_tiles(i64 m, i64 n, i64 k, Trans trans);

}  // namespace kernels

/// Tiles that every larger product of BLAS is cut into at least: as many as cores that shall work on it. Part of a
/// run's bits, as its seed is, and therefore no function of the threads; 2 unless set. The tiles of the other ways
/// follow the threads, since their bits do not follow the tiles.
void set_least_tiles(int tiles);
int least_tiles();

}  // namespace orrery
