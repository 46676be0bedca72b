// Chapter 8. The transpose of a matrix, copied in blocks.
//
// A row copied on its own would write each of its numbers to a different cache line. Sixteen rows that are copied
// together fill the cache lines of the result one after another.
#pragma once

#include "core/machine/parallel.h"
#include "core/products/gemm.h"

namespace orrery::kernels {

/// Rows that are copied together: as many as a cache line holds f32 numbers.
inline constexpr i64 transposed_rows = 16;

/// Rows [begin, end) of `from`, times `factor`, as columns of `to`, whose rows are `stride` apart.
template <class T>
static void transpose_rows(const Mat<const T>& from, i64 begin, i64 end, T* to, i64 stride, T factor = 1) {
  for (i64 j = 0; j < from.cols; ++j)
    for (i64 i = begin; i < end; ++i) to[j * stride + i] = factor * from.data[i * from.stride + j];
}

/// to [cols, rows] = the transpose of `from` [rows, cols].
template <class T> static void transpose(const Mat<const T>& from, T* to) {
  const auto copy = [&from, to](i64 block) {
    const i64 begin = block * transposed_rows;
    transpose_rows(from, begin, std::min(from.rows, begin + transposed_rows), to, from.rows);
  };
  parallel_tasks((from.rows + transposed_rows - 1) / transposed_rows, copy, from.rows * from.cols * element_work);
}

}  // namespace orrery::kernels
