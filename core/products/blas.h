// Chapter 8. Matrix products: C = A B, or C += A B, in fixed tiles.
//
// OpenBLAS's own threading changes the bits of a product with the number of threads. So C is cut into tiles that depend
// on the shape (m, n, k) alone, and each tile is one single-threaded product: the bits are then the same for any thread
// count, at no cost in speed. Shapes for which BLAS's way through memory costs too much go to
// core/products/unpacked_product.h.
// Read next: autograd/ops/fused/linear.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <string>

#include "core/dtype.h"

namespace orrery {

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

/// Which factors of a product are transposed.
enum class Trans { none, a, b, both };
constexpr bool transposes_a(Trans trans) { return trans == Trans::a || trans == Trans::both; }
constexpr bool transposes_b(Trans trans) { return trans == Trans::b || trans == Trans::both; }

/// c = op(a) op(b), or c += op(a) op(b) with `accumulate`. T is float or double; sizes of 0 are allowed.
/// Errors: sizes that do not fit; sizes of 2^31 and more.
template <class T>
void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans = Trans::none, bool accumulate = false);

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

/// The same product with work on each tile of c, which together cover c once: `fill` writes what the product is then
/// added to, such as a bias; `finish` gets the tile when it is complete. Each may be null.
template <class T>
void gemm(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, const TileWork& fill, const TileWork& finish);

/// The same product as one call of OpenBLAS, which shares it among its own threads: bits then depend on their number.
/// What `gemm` is measured by; nothing else uses it.
template <class T>
void gemm_by_blas(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans = Trans::none);

/// `batch` products whose factors and results lie `a_step`, `b_step`, `c_step` elements apart, in parallel over the
/// batch.
template <class T>
void gemm_batch(i64 batch, Mat<const T> a, i64 a_step, Mat<const T> b, i64 b_step, Mat<T> c, i64 c_step,
                Trans trans = Trans::none, bool accumulate = false);

/// Tiles that every larger product of BLAS is cut into at least: as many as cores that shall work on it. Part of a
/// run's bits, as its seed is, and therefore no function of the threads; 2 unless set. Products that run unpacked
/// (core/products/unpacked_product.h) need no such promise: their tiles follow the threads, their bits do not follow
/// the tiles.
void set_least_tiles(int tiles);
int least_tiles();

/// Tiles that `gemm` cuts a product with an m x n result and inner size k into: those of `blas_tiles`, or of
/// `unpacked_tiles`.
i64 gemm_tiles(i64 m, i64 n, i64 k, Trans trans);

/// Tiles of a product that is BLAS's: along its longer side, by the shape alone. Frozen, since every cut is part of a
/// result's bits: a change would be a new version of the bit contract. The same holds for which products are BLAS's
/// (`thin_rows`, `runs_unpacked`), the chunks of sums and of rows (core/kernels/reduce.h), and the tiles of
/// attention (autograd/ops/fused/scores.h).
i64 blas_tiles(i64 m, i64 n, i64 k);

/// What the linked OpenBLAS says of itself, such as "OpenBLAS 0.3.21, kernel Zen, OpenMP".
struct BlasInfo {
  std::string kernel;     ///< the CPU family whose kernels it chose at start
  std::string config;     ///< version and build options
  std::string threading;  ///< "none", "pthreads" or "OpenMP"
};
BlasInfo blas_info();

/// Makes the linked OpenBLAS safe to call from our threads, or throws where that is impossible: a build without threads
/// gives silently wrong products when several threads call it. Called by the first product; programs call it at their
/// start.
void guard_blas();

/// The rule behind `guard_blas`, apart so that it can be tested: what openblas_get_parallel() answered, and our
/// threads.
enum class BlasAction { nothing, single_thread, refuse };
BlasAction blas_action(int openblas_parallel, int threads);

}  // namespace orrery
