// Chapter 6. A wrong answer to exercise 6.4: every call begins at position 0.
// Expect: FAILED  a row alone, at position 3
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  Tensor y = Tensor::empty(x.shape(), f64);
  const i64 n = x.size(0), d = x.size(1);
  for (i64 i = 0; i < n; ++i) {
    for (i64 two_c = 0; two_c < d; two_c += 2) {
      const double frequency = std::pow(10000.0, -static_cast<double>(two_c) / static_cast<double>(d));
      const double angle = static_cast<double>(i) * frequency;
      const double a = x(i, two_c), b = x(i, two_c + 1), cosine = std::cos(angle), sine = std::sin(angle);
      y(i, two_c) = a * cosine - b * sine;
      y(i, two_c + 1) = a * sine + b * cosine;
    }
  }
  return y;
}
