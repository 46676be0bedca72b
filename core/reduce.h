// Chapter 8. Sums and maxima whose bits do not depend on the number of threads.
//
// A sum runs over fixed chunks of 4,096 elements; inside a chunk 16 lanes add every 16th element (one vector register),
// and lanes and chunks are combined in order in double. 2e7 float ones add up to exactly 2e7, where one running float
// stops at 16,777,216. Sums down the columns of a matrix run over fixed strips of at most 256 rows: inside a strip row
// is added to row in the element type, and strips are combined in order in double.
// Read next: core/reduce.cpp
#pragma once

#include <vector>

#include "core/parallel.h"
#include "core/tensor.h"

namespace orrery {

inline constexpr i64 reduce_chunk = 4096;
inline constexpr i64 most_strip_rows = 256;

/// The sum of f(i) for i in [0, n), on the calling thread. f returns T.
template <class T, class F>
double lane_sum(i64 n, F f) {
  constexpr i64 lanes = 16;
  double total = 0;
  for (i64 begin = 0; begin < n; begin += reduce_chunk) {
    const i64 end = std::min(n, begin + reduce_chunk);
    T lane[lanes] = {};
    i64 i = begin;
    for (; i + lanes <= end; i += lanes) {
#pragma omp simd
      for (i64 k = 0; k < lanes; ++k) lane[k] += f(i + k);
    }
    for (i64 k = 0; i < end; ++i, ++k) lane[k] += f(i);
    for (T value : lane) total += static_cast<double>(value);
  }
  return total;
}

/// The same sum with the chunks shared among threads: the bits of `lane_sum`.
template <class T, class F>
double parallel_sum(i64 n, F f) {
  if (n <= reduce_chunk) return lane_sum<T>(n, f);
  const i64 chunks = (n + reduce_chunk - 1) / reduce_chunk;
  Tensor partial = Tensor::empty({chunks}, f64);
  double* sums = partial.write<double>();
  parallel_for(chunks, 4, [=](i64 first, i64 last) {
    for (i64 chunk = first; chunk < last; ++chunk) {
      const i64 begin = chunk * reduce_chunk;
      sums[chunk] = lane_sum<T>(std::min(reduce_chunk, n - begin), [=](i64 i) { return f(begin + i); });
    }
  });
  double total = 0;
  for (i64 chunk = 0; chunk < chunks; ++chunk) total += sums[chunk];
  return total;
}

/// Axes to reduce over; empty means all of them. Negative axes count from the end.
using Axes = std::vector<i64>;

/// The shape after reducing `axes` of `shape`: those axes are dropped, or kept with size 1.
Shape reduced_shape(const Shape& shape, const Axes& axes, bool keep_axes, std::string_view operation);

/// Sums over `axes`.
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
/// Means over `axes`; of no element NaN, as in NumPy.
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
/// Largest values over `axes`; NaN if any is NaN. Of no element: an error.
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
/// Index of the largest value along the last axis, i32; the first of equal ones. No comparison with NaN is true: a NaN
/// at index 0 is chosen, any other is passed over.
Tensor argmax(const Tensor& x);

/// `x` summed down to `shape`: the reverse of broadcasting `shape` to the shape of `x`. The tensor itself if they are
/// equal.
Tensor sum_to(const Tensor& x, const Shape& shape);
/// The sum of all squares, in double: for norms.
double sum_of_squares(const Tensor& x);

}  // namespace orrery
