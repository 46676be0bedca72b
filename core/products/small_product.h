// Chapter 8. Products of matrices too small for BLAS: attention's, one per head.
//
// A call of BLAS costs as much as the product of two 12 x 16 matrices, since it copies both into an order of its own
// first. Here C is computed in blocks that stay in registers while the inner index runs once over k: each step loads a
// few vectors of a row of B and one number from each row of A, and multiplies every one with every other. Rows of B
// and C must be contiguous; A is read number by number, in any direction, so that A^T costs nothing. For B^T, copy it.
// Serves: core/products/blas.h
#pragma once

#include "core/dtype.h"

namespace orrery {

/// A matrix read one number at a time: element (i, p) is data[i * row + p * column].
template <class T>
struct Strided {
  const T* data;
  i64 row, column;
};

/// c = a b, or c += a b: a is m x k, b is k x n with rows `b_stride` elements apart, c is m x n with rows `c_stride`
/// apart. Each number is the sum over p = 0, 1, ..., k - 1 in that order, whatever m and n are. T is float or double.
template <class T>
void small_product(i64 m, i64 n, i64 k, Strided<T> a, const T* b, i64 b_stride, T* c, i64 c_stride, bool accumulate);

}  // namespace orrery
