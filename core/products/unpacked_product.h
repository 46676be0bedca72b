// Chapter 8. Products that read A in place: most products of a Transformer's layers.
//
// BLAS copies ("packs") both factors into a layout of its own, sets C to zero, and goes over C once for every few
// hundred numbers of the inner size. If a weight has only a few hundred rows and columns, each copied number is used
// only a few times, and these passes over memory cost more than the packed inner loop gains. Here small_product.h
// computes the tiles of C. It reads A in place and copies only panels of B:
//   A B      from 64 rows on, up to an inner size of 2,048, or where C is narrow
//   A B^T    from 512 rows on, up to an inner size of 512: B is transposed first, a small part of the work
//   A^T B    up to 1,024 columns of A, from 64 rows on: C stays in the cache and adds up 128 rows of A and B at a time
// All others are thin, packed, or left to BLAS. Speeds: apps/measure/bench/README.md. A sum runs over the inner index
// in order, whatever the tiles are. Which products run this way affects the bits of a result.
#pragma once

#include "core/products/gemm.h"

namespace orrery::kernels {

/// Whether `gemm` uses `unpacked_product` for an m x n result and inner size k.
bool runs_unpacked(i64 m, i64 n, i64 k, Trans trans);

/// How C is cut: along its longer side, into tiles of `length` rows or columns.
struct Cut {
  bool by_rows;
  i64 size, length;
  i64 tiles() const;
  Tile tile(i64 i, i64 m, i64 n) const;
};
Cut cut_of(i64 m, i64 n, Trans trans);

/// The number of tiles of such a product. It grows with the number of threads; no bits depend on it.
i64 unpacked_tiles(i64 m, i64 n, Trans trans);

/// Computes what `gemm` (core/products/gemm.h) does, for shapes that `runs_unpacked` accepts. Sizes must have been
/// checked.
template <class T>
void unpacked_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                      const TileWork& finish);

}  // namespace orrery::kernels
