// Chapter 6. Solution of exercise 6.4: rotary positions.
//
// Turn each pair of numbers (x_2c, x_2c+1) of a row by the angle position * 10000^(-2c / d), where row i of x [n, d]
// has position first + i:
//
// y_2c = x_2c cos - x_2c+1 sin, y_2c+1 = x_2c sin + x_2c+1 cos
//
// x is f64, d even; x itself must stay as it is. (The program rotary.cpp pairs column c with column c + d / 2 instead.
// Both are in use.)
// Serves: nn/positions/positional_encoding.h
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  Tensor y = Tensor::empty(x.shape(), f64);
  const i64 n = x.size(0), d = x.size(1);
  for (i64 i = 0; i < n; ++i) {
    for (i64 two_c = 0; two_c < d; two_c += 2) {
      const double frequency = std::pow(10000.0, -static_cast<double>(two_c) / static_cast<double>(d));
      const double angle = static_cast<double>(first + i) * frequency;
      const double a = x(i, two_c), b = x(i, two_c + 1), cosine = std::cos(angle), sine = std::sin(angle);
      y(i, two_c) = a * cosine - b * sine;
      y(i, two_c + 1) = a * sine + b * cosine;
    }
  }
  return y;
}
