// Chapter 8. Products with few rows: a model that writes one token at a time reads all its weights for one row of x.
//
// With one row of x there are only two operations for each number of W, so reading W from memory takes all the time.
// Copying W into another layout, as for large products, would only add to it. Here the rows of W are read in
// place, and each is multiplied with every row of x: c[i, j] += <x_i, w_j>. A sum runs over as many lanes as a vector
// has, which are combined in a fixed order. So each number of c is a function of its two rows alone: it depends neither
// on the number of threads nor on the rest of the product. Speeds next to OpenBLAS's: apps/measure/bench/README.md.
// Factors in bf16 are rounded on the way: instructions for bf16 multiply blocks of 32 rows, most of them empty here.
// Shapes: x [m, k], W [n, k] with rows `stride` apart, c [m, n].
#pragma once

#include "core/products/gemm.h"
#include "core/products/precision.h"

namespace orrery::kernels {

/// Up to this many rows of x, this product is faster than a packed one (apps/measure/bench/README.md).
inline constexpr i64 thin_rows = 16;
/// Whether `gemm` uses `thin_product` for a result of m rows.
constexpr bool runs_thin(i64 m, Trans trans) { return trans == Trans::b && m <= thin_rows; }
/// Tiles begin at multiples of this many columns, which are also multiples of a block of dropout's decisions.
inline constexpr i64 thin_tile_step = 24;

/// c += x W^T on the calling thread: all rows of x times a few rows of W at a time. T is float or double.
template <class T> void add_thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c);

/// The same with both factors rounded to bf16: x as a copy, W on its way into registers, so that it is read once.
void add_rounded_thin_product(Mat<const float> x, Mat<const float> W, Mat<float> c);

/// The number of tiles of a product with W [n, k]. If W is small, it is 1; otherwise each tile has about
/// `elementwise_grain` numbers of W, in whole blocks of `thin_tile_step` rows. Tiles do not affect the bits.
i64 thin_tiles(i64 n, i64 k);

/// Computes what `gemm` does with Trans::b, in parallel over the rows of W. A tile is a range of columns of c. Sizes
/// must have been checked.
template <class T>
void thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c, bool accumulate, const TileWork& fill,
                  const TileWork& finish, Factors factors = Factors::exact);

}  // namespace orrery::kernels
