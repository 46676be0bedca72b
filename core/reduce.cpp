// Chapter 8. Sums and maxima over axes: adjacent axes are joined, and each group is one pass over [outer, n, inner].
#include "core/kernels/reduce.h"

#include <algorithm>
#include <cmath>

#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
using namespace kernels;
namespace {

using AxisSet = std::array<bool, Shape::max_rank>;

AxisSet axis_set(const Shape& shape, const Axes& axes, std::string_view operation) {
  AxisSet set{};
  if (axes.empty()) set.fill(true);
  for (i64 axis : axes) {
    bool& chosen = set[static_cast<size_t>(shape.axis(axis, operation))];
    check(!chosen, operation, "axis ", axis, " is named twice");
    chosen = true;
  }
  return set;
}

// y[i] = sum over j of x[j, i], for a matrix so wide that a row of sums would not stay in the nearest cache: strips of
// the full length, cut into blocks of columns.
template <class T> void sum_wide_columns(i64 rows, i64 columns, const T* x, T* y) {
  const i64 strips = std::max<i64>(1, (rows + most_strip_rows - 1) / most_strip_rows),
            blocks = (columns + column_block - 1) / column_block;
  Tensor partial = Tensor::empty({strips, columns}, dtype_of<T>);
  T* sums = partial.write<T>();
  parallel_tasks(strips * blocks, [=](i64 task) {
    const i64 strip = task / blocks, column = task % blocks * column_block;
    const i64 width = std::min(column_block, columns - column);
    T* out = sums + strip * columns + column;
    std::fill_n(out, width, T{0});
    for (i64 row = strip * most_strip_rows; row < std::min(rows, (strip + 1) * most_strip_rows); ++row)
      add_to(width, x + row * columns + column, out);
  });
  std::copy_n(combined_strips(partial, 1).data<T>(), columns, y);
}

// y[o, i] = sum over j of x[o, j, i], inner > 1.
template <class T> void sum_columns(i64 outer, i64 n, i64 inner, const T* x, T* y) {
  if (outer == 1 && inner > 2 * column_block) return sum_wide_columns(n, inner, x, y);
  const Tensor sums = strip_sums<T>(outer, n, inner, [=](i64 begin, i64 end, T* out) {
    for (i64 row = begin; row < end; ++row) add_to(inner, x + row * inner, out);
  });
  std::copy_n(sums.data<T>(), outer * inner, y);
}

// y[o] from the n <= sum_lanes numbers of each row o. fold(part, n) combines part[j][k], element j of the k-th of
// several rows, in part[0][k]: each lane has a row of its own.
constexpr i64 rows_at_once = 16;
template <class T> using RowsAtOnce = T[sum_lanes][rows_at_once];
template <class T, class Fold> void reduce_narrow_rows(i64 rows, i64 n, const T* x, T* y, const Fold& fold) {
  parallel_for(rows, row_grain(n), [=](i64 begin, i64 end) {
    RowsAtOnce<T> part = {};
    for (i64 row = begin; row < end; row += rows_at_once) {
      const i64 count = std::min(rows_at_once, end - row);
      for (i64 k = 0; k < count; ++k)
        for (i64 j = 0; j < n; ++j) part[j][k] = x[(row + k) * n + j];
      fold(part, n);
      std::copy_n(part[0], count, y + row);
    }
  });
}

struct Sum {
  // Adds in the order of `lanes_combined`, whose lanes from n on are 0: so the bits are those of chunked_sum.
  template <class T> static void fold(RowsAtOnce<T>& part, i64 n) {
    RowsAtOnce<double> sum;
    for (i64 j = 0; j < n; ++j) {
#pragma omp simd
      for (i64 k = 0; k < rows_at_once; ++k) sum[j][k] = static_cast<double>(part[j][k]);
    }
    for (i64 half = sum_lanes / 2; half > 0; half /= 2) {
      for (i64 j = 0; j < std::min(half, n - half); ++j) add_to(rows_at_once, sum[j + half], sum[j]);
    }
#pragma omp simd
    for (i64 k = 0; k < rows_at_once; ++k) part[0][k] = static_cast<T>(sum[0][k] + 0.0);  // -0 becomes 0
  }
  template <class T> static void reduce(i64 outer, i64 n, i64 inner, const T* x, T* y) {
    if (inner > 1) return sum_columns(outer, n, inner, x, y);
    if (outer > 1 && n > 0 && n <= sum_lanes)
      return reduce_narrow_rows(outer, n, x, y, [](RowsAtOnce<T>& part, i64 count) { fold(part, count); });
    if (outer == 1) {
      *y = static_cast<T>(parallel_sum<T>(n, [=](i64 i) { return x[i]; }));
      return;
    }
    for_rows(outer, n, [=](i64 o) { y[o] = static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return x[o * n + i]; })); });
  }
};

// The first of n numbers, `step` apart, that `extreme`, found in any order, could be: zeros of both signs are equal,
// and NaNs may differ in their bits.
template <class T> T first_extreme(const T* x, i64 n, i64 step, T extreme) {
  if (extreme == extreme && extreme != T{0}) return extreme;
  i64 i = 0;
  while (i + 1 < n && x[i * step] != extreme && x[i * step] == x[i * step]) ++i;
  return x[i * step];
}

template <bool smallest> struct Extreme {
  // The larger or smaller of two: a if they are equal; NaN if one is NaN.
  static constexpr auto of_two = [](auto a, auto b) { return ((smallest ? b >= a : b <= a) | (a != a)) ? a : b; };

  // y[i] = the extreme of x[j * stride + i] over j < n, for i < width.
  template <class T> static void reduce_columns(i64 n, i64 width, i64 stride, const T* x, T* y) {
    const auto add_row = [](i64 count, const T* row, T* to) {
#pragma omp simd
      for (i64 i = 0; i < count; ++i) to[i] = of_two(to[i], row[i]);
    };
    // Several narrow rows are taken as one that fills vectors.
    constexpr i64 wide = 64;
    const i64 together = width == stride ? std::clamp<i64>(wide / width, 1, n) : 1;
    if (together == 1) {
      std::copy_n(x, width, y);
      for (i64 j = 1; j < n; ++j) add_row(width, x + j * stride, y);
      return;
    }
    T row[wide];
    std::copy_n(x, together * width, row);
    i64 j = together;
    for (; j + together <= n; j += together) add_row(together * width, x + j * width, row);
    add_row((n - j) * width, x + j * width, row);
    for (i64 g = 1; g < together; ++g) add_row(width, row + g * width, row);
    for (i64 i = 0; i < width; ++i) y[i] = first_extreme(x + i, n, width, row[i]);
  }
  template <class T> static void fold(RowsAtOnce<T>& part, i64 n) {
    for (i64 j = 1; j < n; ++j) {
#pragma omp simd
      for (i64 k = 0; k < rows_at_once; ++k) part[0][k] = of_two(part[0][k], part[j][k]);
    }
  }
  template <class T> static void reduce_rows(i64 outer, i64 n, const T* x, T* y) {
    if (n <= sum_lanes)
      return reduce_narrow_rows(outer, n, x, y, [](RowsAtOnce<T>& part, i64 count) { fold(part, count); });
    // A long row is cut into pieces, for several threads.
    constexpr i64 piece = 4 * reduce_chunk;
    const i64 pieces = (n + piece - 1) / piece;
    Tensor partial;
    T* out = y;
    if (pieces > 1) {
      partial = Tensor::empty({outer * pieces}, dtype_of<T>);
      out = partial.write<T>();
    }
    for_rows(outer * pieces, std::min(n, piece), [=](i64 i) {
      const i64 begin = i % pieces * piece, count = std::min(piece, n - begin);
      const T* from = x + i / pieces * n + begin;
      out[i] = first_extreme(from, count, 1, extreme_of(from, count, of_two));
    });
    if (pieces > 1) reduce_rows(outer, pieces, out, y);
  }
  template <class T> static void reduce(i64 outer, i64 n, i64 inner, const T* x, T* y) {
    if (inner == 1) return reduce_rows(outer, n, x, y);
    const i64 blocks = (inner + column_block - 1) / column_block;
    for_rows(outer * blocks, n * std::min(inner, column_block), [=](i64 task) {
      const i64 o = task / blocks, begin = task % blocks * column_block;
      reduce_columns(n, std::min(column_block, inner - begin), inner, x + o * n * inner + begin, y + o * inner + begin);
    });
  }
};

// Which of x[0..n) is the largest: the first one, and NaN only if it is the first of all.
constexpr i64 short_row = 128;
template <class T> i64 index_of_largest(const T* x, i64 n) {
  constexpr i64 piece = short_row;
  if (x[0] != x[0]) return 0;
  i64 from = 0;
  T largest = x[0];
  for (i64 begin = 0; begin < n; begin += piece) {
    const T of_piece = extreme_of(x + begin, std::min(piece, n - begin), larger_number);
    if (!(of_piece > largest)) continue;
    largest = of_piece;
    from = begin;
  }
  return std::find(x + from, x + n, largest) - x;
}

// Reduces the chosen axes, from the last group of adjacent axes to the first; reduced axes keep size 1.
template <class Reduction> Tensor reduce_axes(const Tensor& x, const AxisSet& chosen, std::string_view operation) {
  check(is_floating(x.dtype()), operation, "needs f32 or f64, got ", x.dtype());  // also if x is a scalar
  Tensor y = x;
  const auto is_chosen = [&](int axis) { return chosen[static_cast<size_t>(axis)]; };
  for (int last = x.rank() - 1; last >= 0; --last) {
    if (!is_chosen(last)) continue;
    int first = last;
    while (first > 0 && is_chosen(first - 1)) --first;
    Shape shape = y.shape();
    const i64 outer = shape.count(0, first), n = shape.count(first, last + 1),
              inner = shape.count(last + 1, shape.rank());
    for (int axis = first; axis <= last; ++axis) shape = shape.with(axis, 1);
    Tensor reduced = Tensor::empty(shape, x.dtype());
    dispatch_floating(x.dtype(), operation, [&](auto t) {
      using T = decltype(t);
      if (reduced.count() > 0) Reduction::reduce(outer, n, inner, y.data<T>(), reduced.write<T>());
    });
    y = reduced;
    last = first;
  }
  return y;
}

// y[k] = the sum over the strips s of x[s, k], in order and in double, for the first `width` columns.
template <class T> void add_strips(const T* x, i64 strips, i64 columns, i64 width, T* y) {
  double total[sum_lanes] = {};
  if (width == sum_lanes) {
    for (i64 s = 0; s < strips; ++s) {
#pragma omp simd
      for (i64 k = 0; k < sum_lanes; ++k) total[k] += static_cast<double>(x[s * columns + k]);
    }
  } else {
    for (i64 s = 0; s < strips; ++s)
      for (i64 k = 0; k < width; ++k) total[k] += static_cast<double>(x[s * columns + k]);
  }
  for (i64 k = 0; k < width; ++k) y[k] = static_cast<T>(total[k]);
}

}  // namespace

Tensor kernels::combined_strips(const Tensor& partial, i64 matrices) {
  const i64 columns = partial.size(-1), strips = matrices == 0 ? 1 : partial.size(0) / matrices;
  Tensor result = Tensor::empty({matrices, columns}, partial.dtype());
  dispatch_floating(partial.dtype(), "strip_sums", [&](auto t) {
    using T = decltype(t);
    const T* sums = partial.data<T>();
    T* y = result.write<T>();
    parallel_for(matrices * columns, std::max<i64>(sum_lanes, reduce_chunk / strips), [=](i64 begin, i64 end) {
      // Adjacent columns are summed together, one in each lane, so that each strip is read in contiguous pieces.
      for (i64 i = begin, width = 0; i < end; i += width) {
        width = std::min({sum_lanes, end - i, columns - i % columns});
        add_strips(sums + i / columns * strips * columns + i % columns, strips, columns, width, y + i);
      }
    });
  });
  return result;
}

Shape reduced_shape(const Shape& shape, const Axes& axes, bool keep_axes, std::string_view operation) {
  const AxisSet chosen = axis_set(shape, axes, operation);
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!chosen[static_cast<size_t>(axis)])
      result = result.plus(shape[axis]);
    else if (keep_axes)
      result = result.plus(1);
  }
  return result;
}

Tensor sum(const Tensor& x, const Axes& axes, bool keep_axes) {
  check_defined(x, "sum");
  const Tensor y = reduce_axes<Sum>(x, axis_set(x.shape(), axes, "sum"), "sum");
  return (y.shares_memory_with(x) ? y.clone() : y).reshape(reduced_shape(x.shape(), axes, keep_axes, "sum"));
}

Tensor mean(const Tensor& x, const Axes& axes, bool keep_axes) {
  check_defined(x, "mean");
  const Tensor total = sum(x, axes, keep_axes);
  const double n = static_cast<double>(x.count()) / static_cast<double>(total.count());
  const auto divided = [n](auto value) { return static_cast<decltype(value)>(value / n); };
  const Tensor y = map(total, "mean", divided);
  if (x.count() == 0 || all_finite(y, 0, y.count())) return y;
  // A sum may overflow where the mean does not. Only there is it computed in the other order, which has other bits.
  return broadcast_map(y, sum(map(x, "mean", divided), axes, keep_axes), "mean",
                       [](auto of_sum, auto of_parts) { return std::isfinite(of_sum) ? of_sum : of_parts; });
}

namespace {

template <bool smallest> Tensor extreme(const Tensor& x, const Axes& axes, bool keep_axes, std::string_view operation) {
  check_defined(x, operation);
  const Shape shape = reduced_shape(x.shape(), axes, keep_axes, operation);
  check(x.count() > 0 || shape.count() == 0, operation, "has no elements to choose from, shape ", x.shape());
  const Tensor y = reduce_axes<Extreme<smallest>>(x, axis_set(x.shape(), axes, operation), operation);
  return (y.shares_memory_with(x) ? y.clone() : y).reshape(shape);
}

}  // namespace

Tensor max(const Tensor& x, const Axes& axes, bool keep_axes) { return extreme<false>(x, axes, keep_axes, "max"); }
Tensor min(const Tensor& x, const Axes& axes, bool keep_axes) { return extreme<true>(x, axes, keep_axes, "min"); }

Tensor cumulative_sum(const Tensor& x, i64 axis) {
  check_defined(x, "cumulative_sum");
  const int along = x.shape().axis(axis, "cumulative_sum");
  const i64 n = x.size(along), inner = x.shape().count(along + 1, x.rank());
  Tensor y = Tensor::empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), "cumulative_sum", [&](auto t) {
    using T = decltype(t);
    const T* from = x.data<T>();
    T* to = y.write<T>();
    for_rows(x.shape().count(0, along) * inner, n, [=](i64 row) {
      const i64 first = row / inner * n * inner + row % inner;
      double total = 0;
      for (i64 i = first; i < first + n * inner; i += inner)
        to[i] = static_cast<T>(total += static_cast<double>(from[i]));
    });
  });
  return y;
}

Tensor argmax(const Tensor& x) {
  check_defined(x, "argmax");
  check(x.rank() >= 1 && x.size(-1) > 0, "argmax", "needs a last axis with elements, has shape ", x.shape());
  const i64 columns = x.size(-1);
  Tensor y = Tensor::empty(x.shape().without_last(), Dtype::i32);
  i32* index = y.write<i32>();
  dispatch_floating(x.dtype(), "argmax", [&](auto t) {
    using T = decltype(t);
    const T* from = x.data<T>();
    for_rows(y.count(), columns, [=](i64 row) {
      const T* x_row = from + row * columns;
      index[row] = static_cast<i32>(columns <= short_row ? std::max_element(x_row, x_row + columns) - x_row
                                                         : index_of_largest(x_row, columns));
    });
  });
  return y;
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  AxisSet chosen{};
  const int extra = x.rank() - shape.rank();
  check(extra >= 0, "sum_to", "cannot sum ", x.shape(), " down to ", shape);
  for (int axis = 0; axis < x.rank(); ++axis) {
    const i64 target = axis < extra ? 1 : shape[axis - extra];
    chosen[static_cast<size_t>(axis)] = axis < extra || (target == 1 && x.size(axis) != 1);
    check(axis < extra || target == x.size(axis) || target == 1, "sum_to", "cannot sum ", x.shape(), " down to ",
          shape);
  }
  return reduce_axes<Sum>(x, chosen, "sum_to").reshape(shape);
}

namespace {

template <class T> double square(T x) { return static_cast<double>(x) * static_cast<double>(x); }

void check_range(const Tensor& x, i64 begin, i64 end, std::string_view operation) {
  check(begin >= 0 && begin <= end && end <= x.count(), operation, "[", begin, ", ", end, ") is out of range for ",
        x.shape());
}

}  // namespace

double sum_of_squares(const Tensor& x) {
  return dispatch_floating(x.dtype(), "sum_of_squares", [&](auto t) {
    const auto* from = x.data<decltype(t)>();
    return parallel_sum<double>(x.count(), [=](i64 i) { return square(from[i]); });
  });
}

double sum_of_squares(const Tensor& x, i64 begin, i64 end) {
  check_range(x, begin, end, "sum_of_squares");
  return dispatch_floating(x.dtype(), "sum_of_squares", [&](auto t) {
    const auto* from = x.data<decltype(t)>() + begin;
    return chunked_sum<double>(end - begin, [=](i64 i) { return square(from[i]); });
  });
}

// x - x is 0 for a finite x, and NaN for infinity and NaN.
bool all_finite(const Tensor& x, i64 begin, i64 end) {
  check_range(x, begin, end, "all_finite");
  return dispatch_floating(x.dtype(), "all_finite", [&](auto t) {
    using T = decltype(t);
    const T* from = x.data<T>();
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (i64 i = begin; i < end; ++i) sum += from[i] - from[i];
    return sum == 0;
  });
}

}  // namespace orrery
