// Chapter 8. Kernels of layer normalisation on one row, and its backward pass over all of them.
//
// Formulas: autograd/ops/layer_norm.cpp; their derivation: apps/book/ch4/README.md. x^ is (x scale - mean) r, where
// the scale of ordinary rows is 1. If squares of a row's numbers overflow, or are too small for T, the scale is the
// power of two that brings the row near 1, which changes no digit.
#pragma once

#include <cmath>
#include <limits>

#include "autograd/ops/layer_norm.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"

namespace orrery::kernels {

/// What backward needs to know about a row: its scale, and of the scaled row the mean mu, and r and k of
/// autograd/ops/layer_norm.cpp.
template <class T> struct RowStatistics {
  T mean, r, k, scale = 1;

  T normalized(T x) const { return (x * scale - mean) * r; }

  /// Row number `row` of a table [rows, 4].
  static RowStatistics load(const T* table, i64 row) {
    return {table[4 * row], table[4 * row + 1], table[4 * row + 2], table[4 * row + 3]};
  }
  void store(T* table, i64 row) const {
    table[4 * row] = mean;
    table[4 * row + 1] = r;
    table[4 * row + 2] = k;
    table[4 * row + 3] = scale;
  }
};

/// Checks that x [..., n] can be normalised with weight and bias [n], either of which may be undefined, and that eps is
/// a number of 0 or more. With eps = 0, rows must not be constant; this is not checked. Errors name `operation`.
static inline void check_norm(std::string_view operation, const Tensor& x, const Tensor& weight, const Tensor& bias,
                              double eps, LayerNormForm form) {
  check(eps >= 0 && std::isfinite(eps), operation, "eps must be a number of 0 or more, got ", eps);
  check(x.rank() >= 1, operation, "needs at least one axis");
  const i64 n = x.size(-1);
  for (const Tensor* p : {&weight, &bias}) {
    check(!p->defined() || p->shape() == Shape{n}, operation, "weight and bias need shape ", Shape{n}, ", got ",
          p->shape());
  }
  check(form != LayerNormForm::unbiased_std_plus_eps || n > 1, operation, "the unbiased form needs rows of at least 2");
}

/// Whether the mean of squares computed in T, plus what is added to it, is as good as if T had no limits: it did not
/// overflow, and it is so large that squares below the smallest number of T, lost as 0, would not change the digits of
/// their mean.
template <class T> static bool is_mean_square(double mean) {
  using Limits = std::numeric_limits<T>;
  return mean >= static_cast<double>(Limits::min() / Limits::epsilon()) && mean <= static_cast<double>(Limits::max());
}

/// The power of two that brings the largest of n numbers, or `least` if that is larger, near 1. It is 1 if that is 0 or
/// not finite.
template <class T> static T row_scale(const T* x, i64 n, double least) {
  double largest = least;
  for (i64 i = 0; i < n; ++i) largest = std::max(largest, static_cast<double>(std::fabs(x[i])));
  if (largest == 0 || !std::isfinite(largest)) return T{1};
  constexpr int most = std::numeric_limits<T>::max_exponent - 2;  // 2^-most is still normal
  return static_cast<T>(std::ldexp(1.0, std::clamp(-std::ilogb(largest), -most, most)));
}

/// The mean of n numbers times `scale`.
template <class T> static T row_mean(const T* x, i64 n, T scale) {
  return static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return x[i] * scale; }) / static_cast<double>(n));
}

/// The sum of their squares around that mean, in a second pass.
template <class T> static double row_squares(const T* x, i64 n, T scale, T mean) {
  // The mean is rounded to T. The sum of the remaining differences corrects for this.
  const auto difference = [=](i64 i) { return x[i] * scale - mean; };
  const auto [rest, around_mean] =
      chunked_sums<T>(n, fetch_nothing, difference, [=](i64 i) { return difference(i) * difference(i); });
  return std::max(around_mean - rest * rest / static_cast<double>(n), 0.0);  // in this order NaN stays NaN
}

/// Mean, scale and divisor of n numbers, from their mean and squares with scale 1.
template <class T>
static RowStatistics<T> row_statistics(const T* x, i64 n, double eps, LayerNormForm form, T mean, double squares) {
  const bool of_root = form == LayerNormForm::root_of_variance_plus_eps;
  const double size = static_cast<double>(n), added = of_root ? eps : eps * eps;
  T scale = 1;
  if (!is_mean_square<T>(squares / size + added)) {
    scale = row_scale(x, n, std::sqrt(added));
    mean = row_mean(x, n, scale);
    squares = row_squares(x, n, scale, mean);
    // Numbers that are large and nearly equal: they have a variance, and their sum overflowed.
    const double by = static_cast<double>(scale), unscaled = squares / by / by;
    if (is_mean_square<T>(unscaled / size + added)) {
      mean /= scale;
      squares = unscaled;
      scale = 1;
    }
  }
  const double by = static_cast<double>(scale);
  if (of_root)
    return {mean, static_cast<T>(1.0 / std::sqrt(squares / size + eps * by * by)), static_cast<T>(1.0 / size), scale};
  const double divisor = form == LayerNormForm::std_plus_eps ? size : size - 1.0;
  const double s = std::sqrt(squares / divisor), r = 1.0 / (s + eps * by);
  return {mean, static_cast<T>(r), s > 0 ? static_cast<T>(1.0 / (divisor * s * r)) : T{0}, scale};
}

/// Rows whose sums are computed together. In a row, one pass has to wait for the sum of the one before; meanwhile the
/// CPU adds up others.
inline constexpr i64 rows_at_once = 8;

/// Stores the statistics of rows [begin, end) of x [rows, n] in `table`.
template <class T>
static void store_statistics(const T* x, i64 begin, i64 end, i64 n, double eps, LayerNormForm form, T* table) {
  T mean[rows_at_once];
  double squares[rows_at_once];
  for (; begin < end; begin += rows_at_once) {
    const i64 count = std::min(rows_at_once, end - begin);
    const T* first = x + begin * n;
    for (i64 r = 0; r < count; ++r) mean[r] = row_mean(first + r * n, n, T{1});
    for (i64 r = 0; r < count; ++r) squares[r] = row_squares(first + r * n, n, T{1}, mean[r]);
    for (i64 r = 0; r < count; ++r)
      row_statistics(first + r * n, n, eps, form, mean[r], squares[r]).store(table, begin + r);
  }
}

/// y = x^ weight + bias; weight and bias may be null.
template <class T>
static void normalized_row(const T* x, const RowStatistics<T>& s, const T* weight, const T* bias, T* y, i64 n) {
  if (weight) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = s.normalized(x[i]) * weight[i];
  } else {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] = s.normalized(x[i]);
  }
  if (bias) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] += bias[i];
  }
}

/// The same for rows [begin, end), with their statistics.
template <class T>
static void normalize_rows(const T* x, i64 begin, i64 end, i64 n, const T* table, const T* weight, const T* bias,
                           T* y) {
  for (i64 row = begin; row < end; ++row) {
    fetch_to_read(x + (row + end - begin) * n, n);
    fetch_to_write(y + (row + end - begin) * n, n);
    normalized_row(x + row * n, RowStatistics<T>::load(table, row), weight, bias, y + row * n, n);
  }
}

/// Rows of the backward pass that are processed together.
inline constexpr i64 joint_rows = 4;

/// Calls use(g) with g(i) = dy_i weight_i, or dy_i without a weight.
template <class T, class Use> static auto with_gain(const T* weight, const T* dy, const Use& use) {
  return weight ? use([=](i64 i) { return dy[i] * weight[i]; }) : use([=](i64 i) { return dy[i]; });
}

/// The mean of g and k <g, x^>, with g = dy weight. `fetch` is that of chunked_sums.
template <class T> struct RowInner { T mean, inner; };
template <class T, class Fetch>
static RowInner<T> row_inner(const T* x, const RowStatistics<T>& s, const T* weight, const T* dy, i64 n,
                             const Fetch& fetch) {
  return with_gain(weight, dy, [&](auto g) -> RowInner<T> {
    const auto sums = chunked_sums<T>(n, fetch, g, [=](i64 i) { return g(i) * s.normalized(x[i]); });
    return {static_cast<T>(sums[0] / static_cast<double>(n)), s.k * static_cast<T>(sums[1])};
  });
}

/// dx_i = r (g_i - mean of g - x^_i k <g, x^>); dx may be dy. A row of one number equals its mean, so its derivative is
/// 0. We set it to 0 explicitly. Computed, g_1 - mean could be a rounding error, since the mean is rounded to T while a
/// fused multiply-add uses g_1 unrounded; and the factor r, up to 1 / sqrt(eps), would enlarge that error.
template <class T>
static void norm_derivative_row(const T* x, const RowStatistics<T>& s, const T* weight, const RowInner<T>& of_g,
                                const T* dy, T* dx, i64 n) {
  with_gain(weight, dy, [&](auto g) {
    const T mean = of_g.mean, inner = of_g.inner, factor = n > 1 ? s.r : T{0};
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] = factor * (g(i) - mean - s.normalized(x[i]) * inner) * s.scale;
  });
}

/// Adds the parts of adjacent rows, the first of which has its statistics at `table`, to the gradients of weight and
/// bias: dy x^ and dy.
template <i64 rows, class T>
static void add_norm_gradients(const T* x, const T* table, const T* dy, T* dweight, T* dbias, i64 n) {
  RowStatistics<T> s[rows];
  for (i64 row = 0; row < rows; ++row) s[row] = RowStatistics<T>::load(table, row);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    T w = dweight[i], b = dbias[i];
#pragma GCC unroll 4
    for (i64 row = 0; row < rows; ++row) {
      w += dy[row * n + i] * s[row].normalized(x[row * n + i]);
      b += dy[row * n + i];
    }
    dweight[i] = w;
    dbias[i] = b;
  }
}

/// The whole backward pass, for x [..., n], the statistics [rows, 4] of its rows, and a weight [n] or undefined. Writes
/// dx, which may be dy, and returns the gradients of weight and bias as [1, 2 n]. Calls `then(begin, end)` for groups
/// of rows whose dx is complete and still in the nearest cache.
template <class T, class Then>
static Tensor norm_backward(const Tensor& x, const Tensor& statistics, const Tensor& weight, const Tensor& dy,
                            Tensor& dx, const Then& then) {
  const i64 n = x.size(-1), rows = x.shape().without_last().count();
  const T *in = x.data<T>(), *table = statistics.data<T>(), *gain = data_or_null<T>(weight), *d_out = dy.data<T>();
  T* d_in = dx.write<T>();
  return strip_sums<T>(1, rows, 2 * n, [=, &then](i64 first, i64 last, T* gradients) {
    const auto joint = [&](i64 begin, i64 end) {
      RowInner<T> of_g[joint_rows];
      for (i64 row = begin; row < end; ++row) {
        const i64 at = row * n, next = at + joint_rows * n;
        const auto fetch = [=](i64 i) {  // line by line: many requests at once would make the loop wait
          fetch_to_read(in + next + i, sum_lanes);
          fetch_to_read(d_out + next + i, sum_lanes);
          if (d_in != d_out) fetch_to_write(d_in + next + i, sum_lanes);
        };
        of_g[row - begin] = row_inner(in + at, RowStatistics<T>::load(table, row), gain, d_out + at, n, fetch);
      }
      if (end - begin == joint_rows) {
        add_norm_gradients<joint_rows>(in + begin * n, table + 4 * begin, d_out + begin * n, gradients, gradients + n,
                                       n);
      } else {
        for (i64 row = begin; row < end; ++row)
          add_norm_gradients<1>(in + row * n, table + 4 * row, d_out + row * n, gradients, gradients + n, n);
      }
      for (i64 row = begin; row < end; ++row) {
        const i64 at = row * n;
        norm_derivative_row(in + at, RowStatistics<T>::load(table, row), gain, of_g[row - begin], d_out + at, d_in + at,
                            n);
      }
    };
    const i64 group = joint_rows * std::max<i64>(1, 1024 / std::max<i64>(1, n));  // about 4,096 numbers
    for (i64 begin = first; begin < last; begin += group) {
      const i64 end = std::min(last, begin + group);
      for (i64 row = begin; row < end; row += joint_rows) joint(row, std::min(end, row + joint_rows));
      then(begin, end);
    }
  });
}

}  // namespace orrery::kernels
