// Chapter 8. Packed products: the products of a Transformer's layers.
//
// If A and B are large, each number is read many times, and from far away. So a block of A and strips of B are first
// copied ("packed") in the order in which they are read: the block stays in the second cache, a strip in the first if
// it fits, and small_product.h multiplies them. Either factor may be transposed, since only packing sees how it is
// stored. Where C has few columns, a packed number of A would be used only a few times: A is then read in place. With
// few rows of A, a large B is not copied either. Threads share C as a grid of tiles.
//
// A sum runs over the inner index in order, whatever is packed (AMX adds up even and odd numbers apart, 32 at a time).
// So the bits of a result depend neither on the blocks, whose sizes follow from the CPU's caches, nor on the threads,
// nor on the width of vectors.
// Speeds: apps/measure/bench/README.md.
#pragma once

#include <optional>

#include "core/products/gemm.h"
#include "core/products/pair_kernels.h"
#include "core/products/precision.h"

namespace orrery::kernels {

/// A core's own caches in bytes; usual sizes where the system does not tell.
struct CacheSizes {
  i64 first = 1 << 15, second = 1 << 19;
};
/// What is packed at once: `depth` inner numbers, so that a strip of B, of `strip_bytes` bytes for each of them, fills
/// the first cache, but at least 256 and at most 512 (pairs of bf16 take 2,048, see pairs.h); and a block of A of
/// `block_bytes`, half of the second cache, but at least 64 KB and at most 1 MB, since cores may share a larger one.
struct Blocking {
  i64 depth, block_bytes;
};
Blocking blocking_for(const CacheSizes& caches, i64 strip_bytes);

/// The number of tiles of such a product of f32. It grows with the number of threads; no bits depend on it.
i64 packed_tiles(i64 m, i64 n, i64 k);

/// Computes what `gemm` (core/products/gemm.h) does, for any shape. Sizes must have been checked.
template <class T>
void packed_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                    const TileWork& finish, Factors factors = Factors::exact);

/// Computes what `gemm_batch` does: each product on one thread. Sizes must have been checked.
template <class T>
void packed_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c, Trans trans,
                  bool accumulate, Factors factors = Factors::exact);

/// A packed product by this kernel, and one by its plain form, differ by no more than the order of sums explains.
bool agrees_with_plain_form(const PairKernel& kernel);
/// What `packed_product` does for factors in bf16, by this kernel or, without one, with rounded factors.
void bf16_product(const std::optional<PairKernel>& kernel, Mat<const float> a, Mat<const float> b, Mat<float> c,
                  Trans trans, bool accumulate);

}  // namespace orrery::kernels
