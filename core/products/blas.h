// Chapter 8. Products by BLAS, in fixed tiles.
//
// OpenBLAS's own threading changes the bits of a product with the number of threads. So C is cut into tiles, and each
// tile is one single-threaded product. Tiles depend on the shape (m, n, k), not on the threads, so the bits are the
// same for any number of threads. Speeds next to OpenBLAS's own:
// apps/measure/bench/README.md. Sizes must have been checked: use `gemm` (core/products/gemm.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/machine/vector_level.h"
#include "core/products/gemm.h"

namespace orrery {
namespace kernels {

/// What `gemm` does, by BLAS.
template <class T>
void blas_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                  const TileWork& finish);

/// What `gemm_batch` does.
template <class T>
void blas_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c, Trans trans,
                bool accumulate);

/// The same product as one call of OpenBLAS, which shares it among its own threads: bits then depend on their number.
/// Used only by benchmarks, as the yardstick for `gemm`.
template <class T> void gemm_by_blas(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans = Trans::none);

/// The number of tiles of such a product, along its longer side. Depends on the shape alone. Frozen: the tiles affect
/// the bits of trainings that use BLAS.
i64 blas_tiles(i64 m, i64 n, i64 k);

}  // namespace kernels

/// What the linked OpenBLAS says about itself, such as "OpenBLAS 0.3.21, kernel Zen, OpenMP".
struct BlasInfo {
  std::string kernel;     ///< the CPU family whose kernels it chose at start
  std::string config;     ///< version and build options
  std::string threading;  ///< "none", "pthreads" or "OpenMP"
};
BlasInfo blas_info();

/// Whether two words are the same except for upper and lower case: OPENBLAS_CORETYPE=haswell works too.
bool same_word(std::string_view a, std::string_view b);

/// The level that OpenBLAS's kernels of this name use, in any spelling; nothing for names that are not known: those of
/// other architectures, and of an OpenBLAS newer than this table, which are taken to be as wide as the CPU.
std::optional<VectorLevel> kernel_vector_level(std::string_view kernel);
/// Whether its kernels use less than `level`. OpenBLAS takes a CPU that is newer than itself for the oldest one.
bool has_narrow_vectors(const BlasInfo& blas, VectorLevel level);

/// Makes the linked OpenBLAS safe to call from our threads, or throws where that is impossible: a build without threads
/// gives silently wrong products when several threads call it. Called by every product of BLAS; programs call it at
/// their start.
void guard_blas();

/// The rule behind `guard_blas`, separate so that it can be tested: what openblas_get_parallel() answered, and our
/// threads.
enum class BlasAction { nothing, single_thread, refuse };
BlasAction blas_action(int openblas_parallel, int threads);

}  // namespace orrery
