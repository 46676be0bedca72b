// Chapter 8. Kernels of layer normalisation on one row, and its backward pass over all of them.
//
// Formulas: autograd/ops/layer_norm.cpp; their derivation: apps/book/ch4/README.md. x^ is (x scale - mean) r, where
// the scale of ordinary rows is 1. If squares of a row's numbers overflow, or are too small for T, the scale is the
// power of two that brings the row near 1, which changes no digit.
#pragma once

#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

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

/// The mean of n numbers times `scale`, and the sum of squares around it, in two passes.
template <class T> static std::pair<T, double> row_moments(const T* x, i64 n, T scale) {
  const double size = static_cast<double>(n);
  const T mean = static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return x[i] * scale; }) / size);
  // The mean is rounded to T. The sum of the remaining differences corrects for this.
  const auto difference = [=](i64 i) { return x[i] * scale - mean; };
  const auto [rest, around_mean] = chunked_sums<T>(n, difference, [=](i64 i) { return difference(i) * difference(i); });
  return {mean, std::max(around_mean - rest * rest / size, 0.0)};  // in this order NaN stays NaN
}

/// Mean, scale and divisor of n numbers.
template <class T> static RowStatistics<T> row_statistics(const T* x, i64 n, double eps, LayerNormForm form) {
  const bool of_root = form == LayerNormForm::root_of_variance_plus_eps;
  const double size = static_cast<double>(n), added = of_root ? eps : eps * eps;
  T scale = 1;
  auto [mean, squares] = row_moments(x, n, scale);
  if (!is_mean_square<T>(squares / size + added)) {
    scale = row_scale(x, n, std::sqrt(added));
    std::tie(mean, squares) = row_moments(x, n, scale);
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

/// y = x^ weight + bias; weight and bias may be null.
template <class T>
static void normalized_row(const T* x, const RowStatistics<T>& s, const T* weight, const T* bias, T* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = s.normalized(x[i]);
  if (weight) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] *= weight[i];
  }
  if (bias) {
#pragma omp simd
    for (i64 i = 0; i < n; ++i) y[i] += bias[i];
  }
}

/// dx_i = r (g_i - mean of g - x^_i k <g, x^>), with g = dy weight; dx may be dy. A row of one number equals its mean,
/// so its derivative is 0. We set it to 0 explicitly. Computed, g_1 - mean could be a rounding error, since the mean is
/// rounded to T while a fused multiply-add uses g_1 unrounded; and the factor r, up to 1 / sqrt(eps), would enlarge
/// that error.
template <class T>
static void norm_derivative_row(const T* x, const RowStatistics<T>& s, const T* weight, const T* dy, T* dx, i64 n) {
  const auto derivative = [&](auto g) {
    const auto sums = chunked_sums<T>(n, g, [=](i64 i) { return g(i) * s.normalized(x[i]); });
    const T mean = static_cast<T>(sums[0] / static_cast<double>(n)), inner = s.k * static_cast<T>(sums[1]);
    const T factor = n > 1 ? s.r : T{0};
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] = factor * (g(i) - mean - s.normalized(x[i]) * inner) * s.scale;
  };
  if (weight)
    derivative([=](i64 i) { return dy[i] * weight[i]; });
  else
    derivative([=](i64 i) { return dy[i]; });
}

/// Adds a row's part to the gradients of weight and bias: dy x^ and dy.
template <class T>
static void add_norm_gradients(const T* x, const RowStatistics<T>& s, const T* dy, T* dweight, T* dbias, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) {
    dweight[i] += dy[i] * s.normalized(x[i]);
    dbias[i] += dy[i];
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
    in_row_groups(first, last, n, [&](i64 begin, i64 end) {
      for (i64 row = begin; row < end; ++row) {
        const i64 at = row * n;
        const RowStatistics<T> s = RowStatistics<T>::load(table, row);
        add_norm_gradients(in + at, s, d_out + at, gradients, gradients + n, n);
        norm_derivative_row(in + at, s, gain, d_out + at, d_in + at, n);
      }
      then(begin, end);
    });
  });
}

}  // namespace orrery::kernels
