// Chapter 8. Kernels of layer normalisation on one row, and its backward pass over all of them.
//
// Formulas: autograd/ops/layer_norm.cpp; their derivation: apps/book/ch4/README.md. x^ is (x - mean) r.
// Serves: autograd/ops/layer_norm.cpp
#pragma once

#include <cmath>

#include "autograd/ops/layer_norm.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"

namespace orrery::kernels {

/// What backward needs to know about a row: its mean mu, and r and k of autograd/ops/layer_norm.cpp.
template <class T>
struct RowStatistics {
  T mean, r, k;

  /// Row number `row` of a table [rows, 3].
  static RowStatistics load(const T* table, i64 row) {
    return {table[3 * row], table[3 * row + 1], table[3 * row + 2]};
  }
  void store(T* table, i64 row) const {
    table[3 * row] = mean;
    table[3 * row + 1] = r;
    table[3 * row + 2] = k;
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

/// Mean and scale of n numbers, in two passes.
template <class T>
static RowStatistics<T> row_statistics(const T* x, i64 n, double eps, LayerNormForm form) {
  const double size = static_cast<double>(n);
  const T mean = static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return x[i]; }) / size);
  // The mean is rounded to T. The sum of the remaining differences corrects for this.
  const auto [rest, around_mean] = chunked_sums<T>(
      n, [=](i64 i) { return x[i] - mean; }, [=](i64 i) { return (x[i] - mean) * (x[i] - mean); });
  const double squares = std::max(around_mean - rest * rest / size, 0.0);  // in this order NaN stays NaN
  if (form == LayerNormForm::root_of_variance_plus_eps) {
    return {mean, static_cast<T>(1.0 / std::sqrt(squares / size + eps)), static_cast<T>(1.0 / size)};
  }
  const double divisor = form == LayerNormForm::std_plus_eps ? size : size - 1.0;
  const double s = std::sqrt(squares / divisor), r = 1.0 / (s + eps);
  return {mean, static_cast<T>(r), s > 0 ? static_cast<T>(1.0 / (divisor * s * r)) : T{0}};
}

/// y = x^ weight + bias; weight and bias may be null.
template <class T>
static void normalized_row(const T* x, const RowStatistics<T>& s, const T* weight, const T* bias, T* y, i64 n) {
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = (x[i] - s.mean) * s.r;
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
    const auto sums = chunked_sums<T>(n, g, [=](i64 i) { return g(i) * ((x[i] - s.mean) * s.r); });
    const T mean = static_cast<T>(sums[0] / static_cast<double>(n)), inner = s.k * static_cast<T>(sums[1]);
    const T factor = n > 1 ? s.r : T{0};
#pragma omp simd
    for (i64 i = 0; i < n; ++i) dx[i] = factor * (g(i) - mean - (x[i] - s.mean) * s.r * inner);
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
    dweight[i] += dy[i] * ((x[i] - s.mean) * s.r);
    dbias[i] += dy[i];
  }
}

/// The whole backward pass, for x [..., n], the statistics [rows, 3] of its rows, and a weight [n] or undefined. Writes
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
