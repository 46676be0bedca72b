// Chapter 6. A wrong answer to exercise 6.4: every call begins at position 0.
// Expect: FAILED  row 3 alone
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  Tensor y = Tensor::empty(x.shape(), f64);
  const i64 n = x.size(0), d = x.size(1);
  for (i64 r = 0; r < n; ++r) {
    for (i64 two_i = 0; two_i < d; two_i += 2) {
      const double frequency = std::pow(10000.0, -static_cast<double>(two_i) / static_cast<double>(d));
      const double angle = static_cast<double>(r) * frequency;
      const double a = x(r, two_i), b = x(r, two_i + 1), cosine = std::cos(angle), sine = std::sin(angle);
      y(r, two_i) = a * cosine - b * sine;
      y(r, two_i + 1) = a * sine + b * cosine;
    }
  }
  return y;
}
