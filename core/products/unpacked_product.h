// Chapter 8. Products that read A where it lies: most of a Transformer's layers.
//
// BLAS copies ("packs") both factors into an order of its own, sets C to zero, and goes over C once for each few
// hundred numbers of the inner size. With a weight of a few hundred rows and columns each number is used only so many
// times, and those passes over memory cost more than the packed inner loop gains. Here tiles of C are computed by
// small_product.h, which reads A as it lies and copies panels of B alone:
//   A B      from 64 rows on, up to an inner size of 2,048, or where C is narrow
//   A B^T    up to an inner size of 512, from 512 rows on: B is transposed first, a small part of the work then
//   A^T B    up to 1,024 columns of A: C stays in the cache and grows by 128 rows of A and B at a time
// The others are BLAS's. In GF/s on two AVX-512 cores, BLAS and this, factors in the cache / from memory:
//   2048 x 128, k = 384    A B      393, 467 / 317, 365       2048 x 10000, k = 128  A B^T   329, 457 / 328, 452
//   720 x 512, k = 1536    A B      407, 442 / 391, 413       1024 x 512, k = 2048   A B^T   425, 396 / 413, 405
//   128 x 128, k = 2048    A^T B    356, 416 / 251, 267       8000 x 512, k = 1024   A^T B   438, 392 / 436, 382
// The last two of the right column are among those left to BLAS. A sum runs over the inner index in order, whatever the
// tiles are; which products run this way is part of a result's bits.
// Serves: core/products/blas.h
#pragma once

#include "core/products/blas.h"

namespace orrery {

/// Whether `gemm` gives a product with an m x n result and inner size k to `unpacked_product`: by the shape alone.
bool runs_unpacked(i64 m, i64 n, i64 k, Trans trans);

/// Tiles that such a product is cut into, the more threads the more: no bit depends on them.
i64 unpacked_tiles(i64 m, i64 n, Trans trans);

/// What `gemm` (core/products/blas.h) computes, for shapes that `runs_unpacked` names; sizes must have been checked.
template <class T>
void unpacked_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                      const TileWork& finish);

}  // namespace orrery
