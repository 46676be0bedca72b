// Chapter 8. Products of small matrices, such as those of a single attention head, and of packed blocks of large ones.
//
// Copying both factors into a layout of one's own costs more than a small product itself
// (apps/measure/bench/README.md). Here C is computed in blocks that stay in registers while the inner index runs once
// over k. Each step loads a few vectors from a row of B and one number from each row of A, and multiplies each vector
// with each number. Rows of B and C must be contiguous. A is read one number at a time, with any strides, so A^T costs
// nothing extra. To use B^T, copy it.
#pragma once

#include "core/machine/vector.h"
#include "core/products/gemm.h"

namespace orrery::kernels {

/// Rows and vectors of a block of C. 6 x 4 needs 24 registers for C, 4 for B and 1 for A. With 16 registers, only 6 x 2
/// fits.
inline constexpr int block_rows = 6, block_vectors = vector_registers == 32 ? 4 : 2;

/// A matrix read one number at a time: element (i, p) is data[i * row + p * column].
template <class T> struct Strided {
  const T* data;
  i64 row, column;
};

/// c = a b, or c += a b with `accumulate`; a has as many rows as c, and as many columns as b has rows. Each element of
/// c is summed over p = 0, 1, ..., b.rows - 1 in that order, whatever the size of c. T is float or double.
template <class T> void small_product(Strided<T> a, Mat<const T> b, Mat<T> c, bool accumulate);

/// The same for a few rows of A, at most 256, and a large B, which is read once, row by row, as it lies in memory,
/// while columns of C stay in the nearest cache. Same bits.
template <class T> void few_rows_product(Strided<T> a, Mat<const T> b, Mat<T> c, bool accumulate);

/// Columns of a packed strip of B: as many as a block of C has.
template <class T> inline constexpr i64 strip_width = block_vectors* static_cast<i64>(vector_bytes / sizeof(T));
/// The same for packed factors (core/products/packing.h) with `depth` inner numbers: `rows` holds `block_rows` rows of
/// A as columns, for each of them in turn, and `strip` has `strip_width` columns, of which c may have fewer.
/// If c is a whole block, the cache line of element (p % 8, p - p % 8) of `next` is fetched in step p of its sums.
template <class T>
void packed_rows_product(const T* rows, const T* strip, i64 depth, Mat<T> c, bool accumulate, Strided<T> next);

}  // namespace orrery::kernels
