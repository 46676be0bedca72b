// Chapter 6. A wrong answer to exercise 6.2: the exponent is i / d_model.
// Expect: [0, 2] is 0.0998
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_sinusoids(i64 count, i64 d_model) {
  Tensor PE = zeros({count, d_model}, f64);
  for (i64 pos = 0; pos < count; ++pos) {
    for (i64 i = 0; i < d_model / 2; ++i) {
      const double exponent = static_cast<double>(i) / static_cast<double>(d_model);
      const double angle = static_cast<double>(pos) / std::pow(10000.0, exponent);
      PE(pos, 2 * i) = std::sin(angle);
      PE(pos, 2 * i + 1) = std::cos(angle);
    }
  }
  return PE;
}
