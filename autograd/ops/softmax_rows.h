// Chapter 4. Softmax and log softmax of one row, n adjacent numbers, and their derivatives.
//
// Each is a function object, so it can be passed by name:  y = map_rows(x, name, softmax_row).
// The largest number is subtracted before exp, so that exp cannot overflow. This does not change the result, since
// numerator and denominator are divided by the same factor: softmax(x) = softmax(x - max x).
// Read next: autograd/ops/cross_entropy.cpp
#pragma once

#include <algorithm>

#include "core/kernels/elementwise.h"
#include "core/kernels/reduce.h"
#include "core/machine/math.h"

namespace orrery::kernels {

/// The largest of x[0..n), or -infinity if n is 0; NaN only if all are.
template <class T> static T row_max(const T* x, i64 n) {
  return n == 0 ? -std::numeric_limits<T>::infinity() : extreme_of(x, n, larger_number);
}

/// What is subtracted before exp: the maximum, or 0 if all numbers of the row are -infinity.
template <class T> static T row_shift(const T* x, i64 n) {
  const T largest = row_max(x, n);
  return largest == -std::numeric_limits<T>::infinity() ? T{0} : largest;
}

/// y = softmax(x) over n numbers; y may be x. If all x are -infinity, all y are 0.
static constexpr auto softmax_row = []<class T>(const T* x, T* y, i64 n) {
  const T shift = row_shift(x, n);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = math::exp(x[i] - shift);
  const double total = chunked_sum<T>(n, [=](i64 i) { return y[i]; });
  const T factor = total == 0 ? T{0} : static_cast<T>(1.0 / total);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] *= factor;
};

/// dx_i = y_i (dy_i - <dy, y>); dx may be dy. Where y is 0, dx is 0 even if dy is NaN: no gradient flows to masked
/// elements.
static constexpr auto softmax_derivative_row = []<class T>(const T* y, const T* dy, T* dx, i64 n) {
  const T inner = static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return y[i] == T{0} ? T{0} : y[i] * dy[i]; }));
#pragma omp simd
  for (i64 i = 0; i < n; ++i) dx[i] = y[i] == T{0} ? T{0} : y[i] * (dy[i] - inner);
};

/// y = log softmax(x) over n numbers; y may be x. If all x are -infinity, all y are NaN.
static constexpr auto log_softmax_row = []<class T>(const T* x, T* y, i64 n) {
  const T shift = row_shift(x, n);
  const T log_total = static_cast<T>(std::log(chunked_sum<T>(n, [=](i64 i) { return math::exp(x[i] - shift); })));
  for (i64 i = 0; i < n; ++i) y[i] = x[i] - shift - log_total;
};

/// dx_i = dy_i - e^{y_i} sum_j dy_j.
static constexpr auto log_softmax_derivative_row = []<class T>(const T* y, const T* dy, T* dx, i64 n) {
  const T total = static_cast<T>(chunked_sum<T>(n, [=](i64 i) { return dy[i]; }));
#pragma omp simd
  for (i64 i = 0; i < n; ++i) dx[i] = dy[i] - math::exp(y[i]) * total;
};

/// Calls kernel(row of x, row of the result, n) for every row of x, and returns the result, a new tensor of the same
/// shape. A row is the n elements along the last axis. x must be floating and have at least one axis.
template <class Kernel> static Tensor map_rows(const Tensor& x, std::string_view operation, const Kernel& kernel) {
  check(x.rank() >= 1, operation, "needs at least one axis, has shape ", x.shape());
  const i64 n = x.size(-1);
  Tensor result = Tensor::empty(x.shape(), x.dtype());
  dispatch_floating(x.dtype(), operation, [&](auto t) {
    using T = decltype(t);
    const T* in = x.data<T>();
    T* out = result.write<T>();
    for_rows(x.shape().without_last().count(), n, [=](i64 row) {
      fetch_to_read(in + (row + 1) * n, std::min<i64>(n, 4096));  // while this one stays in the nearest cache
      kernel(in + row * n, out + row * n, n);
    });
  });
  return result;
}

/// The same with kernel(row of a, row of b, row of the result, n), for a and b of the same shape and dtype.
template <class Kernel>
static Tensor map_rows(const Tensor& a, const Tensor& b, std::string_view operation, const Kernel& kernel) {
  check(a.rank() >= 1 && a.shape() == b.shape() && a.dtype() == b.dtype(), operation,
        "rows of equal shape and dtype are needed, got ", a.shape(), " ", a.dtype(), " and ", b.shape(), " ",
        b.dtype());
  const i64 n = a.size(-1);
  Tensor result = Tensor::empty(a.shape(), a.dtype());
  dispatch_floating(a.dtype(), operation, [&](auto t) {
    using T = decltype(t);
    const T *x = a.data<T>(), *y = b.data<T>();
    T* out = result.write<T>();
    for_rows(a.shape().without_last().count(), n, [=](i64 row) { kernel(x + row * n, y + row * n, out + row * n, n); });
  });
  return result;
}

}  // namespace orrery::kernels
