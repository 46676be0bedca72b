// Chapter 6. A wrong answer to exercise 6.4: the first number of a pair is overwritten before the second is computed.
// Expect: FAILED  lengths stay
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  Tensor y = x.clone();
  const i64 n = x.size(0), d = x.size(1);
  for (i64 i = 0; i < n; ++i) {
    for (i64 two_c = 0; two_c < d; two_c += 2) {
      const double frequency = std::pow(10000.0, -static_cast<double>(two_c) / static_cast<double>(d));
      const double angle = static_cast<double>(first + i) * frequency;
      y(i, two_c) = y(i, two_c) * std::cos(angle) - y(i, two_c + 1) * std::sin(angle);
      y(i, two_c + 1) = y(i, two_c) * std::sin(angle) + y(i, two_c + 1) * std::cos(angle);
    }
  }
  return y;
}
