// Chapter 8. Kernels on one row: what softmax and its relatives do to n numbers that lie together.
//
// The largest number is subtracted before exp, which changes nothing (numerator and denominator shrink alike) but keeps
// exp from overflowing: softmax(x) = softmax(x - max x).
// Read next: core/random.h
#pragma once

#include "core/math.h"
#include "core/reduce.h"

namespace orrery {

/// The largest of x[0..n), -infinity for none; NaN is passed over.
template <class T>
T row_max(const T* x, i64 n) {
  T largest = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : largest)
  for (i64 i = 0; i < n; ++i) largest = x[i] > largest ? x[i] : largest;
  return largest;
}

/// What is subtracted before exp: the maximum, or 0 where a row holds nothing but -infinity.
template <class T>
T row_shift(const T* x, i64 n) {
  const T largest = row_max(x, n);
  return largest == -std::numeric_limits<T>::infinity() ? T{0} : largest;
}

/// y = softmax(x) over n numbers; y may be x. All zero where every x is -infinity.
template <class T>
void softmax_row(const T* x, T* y, i64 n) {
  const T shift = row_shift(x, n);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] = math::exp(x[i] - shift);
  const double total = lane_sum<T>(n, [=](i64 i) { return y[i]; });
  const T factor = total == 0 ? T{0} : static_cast<T>(1.0 / total);
#pragma omp simd
  for (i64 i = 0; i < n; ++i) y[i] *= factor;
}

/// dx_i = y_i (dy_i - <dy, y>). Where y is 0, dx is 0 whatever dy is: masked elements pass nothing on.
template <class T>
void softmax_derivative_row(const T* y, const T* dy, T* dx, i64 n) {
  const T inner = static_cast<T>(lane_sum<T>(n, [=](i64 i) { return y[i] == T{0} ? T{0} : y[i] * dy[i]; }));
#pragma omp simd
  for (i64 i = 0; i < n; ++i) dx[i] = y[i] == T{0} ? T{0} : y[i] * (dy[i] - inner);
}

}  // namespace orrery
