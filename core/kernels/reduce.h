// Chapter 8. Sums whose bits do not depend on the number of threads.
//
// A sum is cut into fixed chunks of 4,096 elements. Inside a chunk there are 16 partial sums, called lanes: each adds
// up every 16th element, so that they fill vector registers whatever their width. Then the lanes are added pairwise and
// the chunks in order, in double. So 2e7 ones in f32 add up to exactly 2e7, where a single f32 accumulator stops at
// 16,777,216. Sums down the columns of a matrix are split into fixed strips of at most 256 rows: inside a strip, rows
// are added in the element type; then the strips are added in order, in double.
#pragma once

#include <array>
#include <vector>

#include "core/kernels/elementwise.h"
#include "core/machine/vector.h"

namespace orrery {
namespace kernels {

inline constexpr i64 reduce_chunk = 4096;
inline constexpr i64 most_strip_rows = 256;
/// A matrix with more columns than two such blocks is summed block by block, in strips of `most_strip_rows` rows.
inline constexpr i64 column_block = 1024;

/// The number of partial sums. Frozen: not the lanes of a vector register, whose number depends on the machine.
inline constexpr i64 sum_lanes = 16;

/// The sum of all lanes in double. Each step adds the upper half to the lower one: 16, 8, 4, 2, 1 lanes.
template <class T> static double lanes_combined(const T (&lane)[sum_lanes]) {
  double sum[sum_lanes];
#pragma omp simd
  for (i64 k = 0; k < sum_lanes; ++k) sum[k] = static_cast<double>(lane[k]);
#pragma GCC unroll 4
  for (i64 half = sum_lanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (i64 k = 0; k < half; ++k) sum[k] += sum[k + half];
  }
  return sum[0];
}

/// Passed as `fetch` below: asks for nothing.
static constexpr auto fetch_nothing = [](i64) {};

/// For each f, the sum of f(i) for i in [0, n), in one pass on the calling thread. Each f returns T. For each i they
/// are called in order, so that one may overwrite what those before it read. Before each 16 numbers, calls fetch(i),
/// which may ask for numbers that are needed soon.
template <class T, class Fetch, class... F>
static std::array<double, sizeof...(F)> chunked_sums(i64 n, Fetch fetch, F... f) {
  // Lanes as vectors: GCC keeps arrays in memory, where each addition waits for the store of the one before.
  using Vector = typename VectorOf<T>::type;
  constexpr i64 width = VectorOf<T>::lanes, vectors = sum_lanes / width;
  constexpr size_t sums = sizeof...(F);
  std::array<double, sums> total{};
  for (i64 begin = 0; begin < n; begin += reduce_chunk) {
    const i64 end = std::min(n, begin + reduce_chunk);
    Vector sum[sums][vectors] = {};
    i64 i = begin;
    for (; i + sum_lanes <= end; i += sum_lanes) {
      fetch(i);
      T term[sums][sum_lanes];
#pragma omp simd
      for (i64 k = 0; k < sum_lanes; ++k) {
        size_t s = 0;
        ((term[s++][k] = f(i + k)), ...);
      }
#pragma GCC unroll 8
      for (size_t s = 0; s < sums; ++s) {
#pragma GCC unroll 8
        for (i64 v = 0; v < vectors; ++v) sum[s][v] += load<Vector>(term[s] + v * width);
      }
    }
    T lane[sums][sum_lanes];
#pragma GCC unroll 8
    for (size_t s = 0; s < sums; ++s) {
#pragma GCC unroll 8
      for (i64 v = 0; v < vectors; ++v) store(sum[s][v], lane[s] + v * width);
    }
    for (i64 k = 0; i < end; ++i, ++k) {
      size_t s = 0;
      ((lane[s++][k] += f(i)), ...);
    }
    for (size_t s = 0; s < sums; ++s) total[s] += lanes_combined(lane[s]);
  }
  return total;
}

/// The sum of f(i) for i in [0, n), on the calling thread. f returns T.
template <class T, class F> static double chunked_sum(i64 n, F f) { return chunked_sums<T>(n, fetch_nothing, f)[0]; }

/// The same sum, with the same bits as `chunked_sum`, but with its chunks shared among threads.
template <class T, class F> static double parallel_sum(i64 n, F f) {
  const FlushDenormals flushed;
  if (n <= reduce_chunk) return chunked_sum<T>(n, f);
  const i64 chunks = (n + reduce_chunk - 1) / reduce_chunk;
  Tensor partial = Tensor::empty({chunks}, f64);
  double* sums = partial.write<double>();
  parallel_for(chunks, 4, [=](i64 first, i64 last) {
    for (i64 chunk = first; chunk < last; ++chunk) {
      const i64 begin = chunk * reduce_chunk;
      sums[chunk] = chunked_sum<T>(std::min(reduce_chunk, n - begin), [=](i64 i) { return f(begin + i); });
    }
  });
  double total = 0;
  for (i64 chunk = 0; chunk < chunks; ++chunk) total += sums[chunk];
  return total;
}

/// The extreme of x[0..n) by `of_two`, which takes numbers or vectors, n > 0, in an order that suits vectors.
template <class T, class OfTwo> static T extreme_of(const T* x, i64 n, const OfTwo& of_two) {
  using Vector = typename VectorOf<T>::type;
  constexpr i64 lanes = VectorOf<T>::lanes, step = 4 * lanes;
  T result = x[0];
  if (n < lanes) {
    for (i64 i = 1; i < n; ++i) result = of_two(result, x[i]);
    return result;
  }
  const auto at = [x](i64 i) { return load<Vector>(x + i); };
  Vector a = at(0);
  i64 i = lanes;
  if (n >= step) {
    Vector b = at(lanes), c = at(2 * lanes), d = at(3 * lanes);
    for (i = step; i + step <= n; i += step) {
      a = of_two(a, at(i));
      b = of_two(b, at(i + lanes));
      c = of_two(c, at(i + 2 * lanes));
      d = of_two(d, at(i + 3 * lanes));
    }
    a = of_two(of_two(a, b), of_two(c, d));
  }
  for (; i + lanes <= n; i += lanes) a = of_two(a, at(i));
  a = of_two(a, at(n - lanes));  // some numbers for a second time, which changes nothing
  T lane[lanes];
  store(a, lane);
#pragma GCC unroll 4
  for (i64 half = lanes / 2; half > 0; half /= 2) {
#pragma omp simd
    for (i64 k = 0; k < half; ++k) lane[k] = of_two(lane[k], lane[k + half]);
  }
  return lane[0];
}

/// The larger of two numbers, or of two vectors in each lane; NaN only if both are.
static constexpr auto larger_number = [](auto a, auto b) { return ((b > a) | (a != a)) ? b : a; };

/// Adds up the strips of [matrices * strips, columns] in order and in double: [matrices, columns].
Tensor combined_strips(const Tensor& partial, i64 matrices);

/// The number of rows in a strip: together they have about as many elements as two chunks. They are few enough to be
/// added up in f32.
static inline i64 strip_rows(i64 columns) {
  return std::clamp<i64>(2 * reduce_chunk / std::max<i64>(1, columns), 16, most_strip_rows);
}

/// What a chunk of work may take to stay in a cache of 16 or 32 MB that all cores share. Frozen (core/products/gemm.h).
inline constexpr i64 shared_cache_bytes = 10'000'000;

/// How many rows an operation processes at a time if it does not keep its inner result, which has `columns` columns:
/// all rows if they fit into `shared_cache_bytes`, otherwise equal chunks that do. 256 rows count as fitting even if
/// they are larger. Depends on shape and dtype alone, since the chunks affect the bits of a result.
static inline i64 row_chunk(i64 rows, i64 columns, Dtype dtype) {
  constexpr i64 least_rows = 256;
  const i64 fitting = std::max(least_rows, shared_cache_bytes / std::max<i64>(1, columns * bytes_of(dtype)));
  const i64 chunks = std::max<i64>(1, (rows + fitting - 1) / fitting);
  return std::max<i64>(1, (rows + chunks - 1) / chunks);
}

/// Sums down the columns of `matrices` matrices of `rows` rows each, strip by strip. add_rows(begin, end, sums) adds to
/// sums[0 .. columns) what rows [begin, end) contribute, where rows are counted over all matrices. It may do other work
/// on these rows at the same time. Returns [matrices, columns].
template <class T, class AddRows>
static Tensor strip_sums(i64 matrices, i64 rows, i64 columns, const AddRows& add_rows) {
  const i64 length = strip_rows(columns), strips = std::max<i64>(1, (rows + length - 1) / length);
  Tensor partial = Tensor::empty({matrices * strips, columns}, dtype_of<T>);
  T* sums = partial.write<T>();
  parallel_for(matrices * strips, row_grain(length * columns), [&](i64 first, i64 last) {
    for (i64 s = first; s < last; ++s) {
      const i64 matrix = s / strips, begin = s % strips * length, end = std::min(rows, begin + length);
      T* out = sums + s * columns;
      std::fill_n(out, columns, T{0});
      add_rows(matrix * rows + begin, matrix * rows + end, out);
    }
  });
  return strips == 1 ? partial : combined_strips(partial, matrices);
}

}  // namespace kernels

}  // namespace orrery
