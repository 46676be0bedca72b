// Chapter 6. Solution of exercise 6.4: rotary positions.
//
// Turn each pair of numbers (x_2i, x_2i+1) of a row by the angle pos * 10000^(-2i / d), where row r of x [n, d] has
// position pos = first + r:
//
// y_2i = x_2i cos - x_2i+1 sin, y_2i+1 = x_2i sin + x_2i+1 cos
//
// x is f64, d even; x itself must stay as it is. (The program rotary.cpp pairs column i with column i + d / 2 instead.
// Both are in use.)
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  Tensor y = Tensor::empty(x.shape(), f64);
  const i64 n = x.size(0), d = x.size(1);
  for (i64 r = 0; r < n; ++r) {
    for (i64 two_i = 0; two_i < d; two_i += 2) {
      const double frequency = std::pow(10000.0, -static_cast<double>(two_i) / static_cast<double>(d));
      const double angle = static_cast<double>(first + r) * frequency;
      const double a = x(r, two_i), b = x(r, two_i + 1), cosine = std::cos(angle), sine = std::sin(angle);
      y(r, two_i) = a * cosine - b * sine;
      y(r, two_i + 1) = a * sine + b * cosine;
    }
  }
  return y;
}
