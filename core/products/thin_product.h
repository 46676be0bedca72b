// Chapter 8. Products with few rows: a model that writes one token at a time reads every weight for one row of x.
//
// Such a product does two operations for each number of W it reads, so its speed is that of memory, and what BLAS does
// for large ones (copying W into an order of its own) only costs. Here rows of W go by as they lie, each dotted with
// every row of x: c[i, j] = <x_i, w_j> + what was there. A sum runs over 16 lanes (or what a vector holds), combined in
// a fixed order: each number of c is a function of its two rows alone, whatever the threads and whatever else is in the
// product. Speeds beside OpenBLAS's: apps/bench/README.md.
// Shapes: x [m, k], W [n, k] with rows `stride` apart, c [m, n].
// Serves: core/products/blas.h
#pragma once

#include "core/products/blas.h"

namespace orrery {

/// Up to so many rows, this product is faster than BLAS's.
inline constexpr i64 thin_rows = 16;
/// Its tiles begin at multiples of so many columns, where whole blocks of dropout's decisions begin, too.
inline constexpr i64 thin_tile_step = 24;

/// c += x W^T on the calling thread; a few rows of W at a time meet all rows of x. T is float or double.
template <class T>
void add_thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c);

/// Tiles that a product with W [n, k] is cut into: one for a small W, else chunks of about `elementwise_grain` numbers,
/// whole blocks of rows. Other than a product's in core/products/blas.h they are no part of any bit.
i64 thin_tiles(i64 n, i64 k);

/// c = x W^T in parallel over the rows of W, with work on each tile of c as in `gemm` (core/products/blas.h); tiles are columns
/// of c. Errors: sizes that do not fit.
template <class T>
void thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c, const TileWork& fill, const TileWork& finish);

}  // namespace orrery
