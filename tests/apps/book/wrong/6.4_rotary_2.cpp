// Chapter 6. A wrong answer to exercise 6.4: the first number of a pair is overwritten before the second is computed.
// Expect: FAILED  lengths stay
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  Tensor y = x.clone();
  const i64 n = x.size(0), d = x.size(1);
  for (i64 r = 0; r < n; ++r) {
    for (i64 two_i = 0; two_i < d; two_i += 2) {
      const double frequency = std::pow(10000.0, -static_cast<double>(two_i) / static_cast<double>(d));
      const double angle = static_cast<double>(first + r) * frequency;
      y(r, two_i) = y(r, two_i) * std::cos(angle) - y(r, two_i + 1) * std::sin(angle);
      y(r, two_i + 1) = y(r, two_i) * std::sin(angle) + y(r, two_i + 1) * std::cos(angle);
    }
  }
  return y;
}
