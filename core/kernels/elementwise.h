// Chapter 8. Elementwise loops: one formula applied to every element, in parallel, by code the compiler vectorises.
//
// The formula is a function object known at compile time, so the loop around it becomes vector instructions. A call
// through a pointer for each element would be many times slower (apps/measure/bench/README.md).
#pragma once

#include <array>

#include "core/machine/parallel.h"
#include "core/tensor.h"

namespace orrery::kernels {

/// y[i] = f(x[i]) for i in [0, n); y may be x.
template <class T, class F> static void map(i64 n, const T* x, T* y, F f) {
  parallel_for(n, elementwise_grain, [=](i64 begin, i64 end) {
#pragma omp simd
    for (i64 i = begin; i < end; ++i) y[i] = f(x[i]);
  });
}

/// z[i] = f(x[i], y[i]) for i in [0, n); z may be x or y.
template <class T, class F> static void map(i64 n, const T* x, const T* y, T* z, F f) {
  parallel_for(n, elementwise_grain, [=](i64 begin, i64 end) {
#pragma omp simd
    for (i64 i = begin; i < end; ++i) z[i] = f(x[i], y[i]);
  });
}

/// y[i] += x[i] for i in [0, n), on the calling thread.
template <class T> static void add_to(i64 n, const T* x, T* y) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] += x[i];
}

/// Calls body(row) for every row of a matrix with `columns` columns; the rows are shared among threads.
template <class Body> static void for_rows(i64 rows, i64 columns, const Body& body) {
  parallel_for(rows, row_grain(columns), [&](i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) body(row);
  });
}

/// Asks for n numbers that are needed soon, to be read or to be written: they come from memory meanwhile. Where a loop
/// computes long between two reads, the CPU does not do so by itself. Elsewhere this gains nothing (`map`: measured).
template <class T> static void fetch_to_read(const T* x, i64 n) {
  for (i64 i = 0; i < n; i += 64 / i64{sizeof(T)}) __builtin_prefetch(x + i, 0);
}
template <class T> static void fetch_to_write(const T* x, i64 n) {
  for (i64 i = 0; i < n; i += 64 / i64{sizeof(T)}) __builtin_prefetch(x + i, 1);
}

/// Calls body(first, last) for segments of [0, n), and asks for the next one of x, to be read, and of y, to be written,
/// also beyond n, where the next row begins.
inline constexpr i64 segment_size = 256;
template <class T, class Body> static void in_segments(i64 n, const T* x, const T* y, const Body& body) {
  for (i64 first = 0, last; first < n; first = last) {
    last = std::min(n, first + segment_size);
    const i64 next = std::min(segment_size, n);
    if (x != y) fetch_to_read(x + last, next);
    fetch_to_write(y + last, next);
    body(first, last);
  }
}

/// Calls body(first, last) for the rows [begin, end) in groups of about `numbers` numbers.
template <class Body> static void in_row_groups(i64 begin, i64 end, i64 columns, const Body& body, i64 numbers = 4096) {
  const i64 group = std::max<i64>(1, numbers / std::max<i64>(1, columns));
  for (i64 row = begin; row < end; row += group) body(row, std::min(end, row + group));
}

/// Calls body(begin, end) for groups of adjacent rows, which are shared among threads. A group is small enough to stay
/// in the nearest cache while several loops pass over it.
template <class Body> static void for_row_groups(i64 rows, i64 columns, const Body& body, i64 numbers = 4096) {
  parallel_for(rows, row_grain(columns),
               [&](i64 begin, i64 end) { in_row_groups(begin, end, columns, body, numbers); });
}

/// The loop over two operands that are broadcast to a common shape. Adjacent axes are joined if both operands advance
/// along them in the same way: two equal shapes become one long axis, a matrix plus a row becomes two axes.
struct BroadcastLoop {
  static constexpr int max_rank = Shape::max_rank;
  int rank = 0;                        // joined axes, the last runs fastest
  std::array<i64, max_rank> size{};    // of each joined axis
  std::array<i64, max_rank> a{}, b{};  // elements that each operand advances per step of that axis; 0 repeats it
  BroadcastLoop(const Shape& result, const Shape& shape_a, const Shape& shape_b);

  struct Position {
    i64 a, b, inner;  // element of each operand, and the index along the last joined axis
  };
  /// The elements of the operands from which element number `i` of the result is computed.
  Position at(i64 i) const;

  /// Rows of fewer numbers than these are not worth a loop each: their operands are first repeated in buffers.
  static constexpr i64 narrow = 64, buffered = 512;
  bool is_narrow() const { return rank > 1 && size[static_cast<size_t>(rank - 1)] < narrow; }
  /// What an operand, which advances by `steps` (`a` or `b`), contributes to `count` <= `buffered` elements of the
  /// result from number `begin` on: adjacent numbers, in the operand itself or in `buffer`.
  template <class T>
  const T* repeated(const std::array<i64, max_rank>& steps, i64 begin, i64 count, const T* operand,
                    std::array<T, buffered + narrow>& buffer) const;
};

/// z = f(a, b) with broadcasting; the shapes must fit.
template <class T, class F>
static void broadcast_map(const BroadcastLoop& loop, i64 count, const T* a, const T* b, T* z, F f) {
  const i64 inner = loop.size[static_cast<size_t>(loop.rank - 1)];
  const i64 step_a = loop.a[static_cast<size_t>(loop.rank - 1)], step_b = loop.b[static_cast<size_t>(loop.rank - 1)];
  parallel_for(count, elementwise_grain, [&](i64 begin, i64 end) {
    if (loop.is_narrow()) {
      std::array<T, BroadcastLoop::buffered + BroadcastLoop::narrow> of_a, of_b;
      for (i64 n = 0; begin < end; begin += n) {
        n = std::min(BroadcastLoop::buffered, end - begin);
        const T *x = loop.repeated(loop.a, begin, n, a, of_a), *y = loop.repeated(loop.b, begin, n, b, of_b);
        T* out = z + begin;
#pragma omp simd
        for (i64 i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
      }
      return;
    }
    while (begin < end) {
      const BroadcastLoop::Position at = loop.at(begin);
      const i64 n = std::min(inner - at.inner, end - begin);
      const T *x = a + at.a, *y = b + at.b;
      T* out = z + begin;
      if (step_a == 0 && step_b == 0) {
        std::fill_n(out, n, f(x[0], y[0]));
      } else if (step_a == step_b) {
#pragma omp simd
        for (i64 i = 0; i < n; ++i) out[i] = f(x[i], y[i]);
      } else if (step_b == 0) {
#pragma omp simd
        for (i64 i = 0; i < n; ++i) out[i] = f(x[i], y[0]);
      } else {
#pragma omp simd
        for (i64 i = 0; i < n; ++i) out[i] = f(x[0], y[i]);
      }
      begin += n;
    }
  });
}

/// f applied to every element of x, in a new tensor of the same shape; x must be floating.
template <class F> static Tensor map(const Tensor& x, std::string_view operation, F f) {
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), operation, [&](auto t) {
    using T = decltype(t);
    map<T>(x.count(), x.data<T>(), y.write<T>(), f);
  });
  return y;
}

/// f(a, b) with NumPy's broadcasting, in a new tensor; both of the same floating dtype.
template <class F> static Tensor broadcast_map(const Tensor& a, const Tensor& b, std::string_view operation, F f) {
  check(a.defined() && b.defined(), operation, "needs two tensors");
  check(a.dtype() == b.dtype(), operation, "dtypes differ (", a.dtype(), " and ", b.dtype(), ")");
  Tensor z = Tensor::empty(broadcast(a.shape(), b.shape(), operation), a.dtype());
  dispatch_floating(a.dtype(), operation, [&](auto t) {
    using T = decltype(t);
    const T *x = a.data<T>(), *y = b.data<T>();
    if (a.shape() == b.shape()) return map<T>(z.count(), x, y, z.write<T>(), f);
    broadcast_map<T>(BroadcastLoop(z.shape(), a.shape(), b.shape()), z.count(), x, y, z.write<T>(), f);
  });
  return z;
}

}  // namespace orrery::kernels
