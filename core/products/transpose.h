// Chapter 8. The transpose of a matrix, copied by blocks.
//
// Read along its rows and written along its columns, every number would lie in another cache line. Sixteen rows of the
// matrix that go by together fill lines of the result one after the other.
// Serves: core/products/blas.h
#pragma once

#include "core/machine/parallel.h"
#include "core/products/blas.h"

namespace orrery {

/// Numbers that go by together: f32 fills a cache line with them.
inline constexpr i64 transposed_rows = 16;

/// Rows [begin, end) of `from`, times `factor`, as columns of `to`, whose rows are `stride` apart.
template <class T>
void transpose_rows(const Mat<const T>& from, i64 begin, i64 end, T* to, i64 stride, T factor = 1) {
  for (i64 j = 0; j < from.cols; ++j)
    for (i64 i = begin; i < end; ++i) to[j * stride + i] = factor * from.data[i * from.stride + j];
}

/// to [cols, rows] = the transpose of `from` [rows, cols].
template <class T>
void transpose(const Mat<const T>& from, T* to) {
  parallel_tasks((from.rows + transposed_rows - 1) / transposed_rows, [&from, to](i64 block) {
    const i64 begin = block * transposed_rows;
    transpose_rows(from, begin, std::min(from.rows, begin + transposed_rows), to, from.rows);
  });
}

}  // namespace orrery
