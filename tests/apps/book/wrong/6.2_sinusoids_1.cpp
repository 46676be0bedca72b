// Chapter 6. A wrong answer to exercise 6.2: each column has a frequency of its own.
// Expect: [0, 1] is 0.995
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_sinusoids(i64 count, i64 d_model) {
  Tensor PE = zeros({count, d_model}, f64);
  for (i64 pos = 0; pos < count; ++pos) {
    for (i64 column = 0; column < d_model; ++column) {
      const double exponent = static_cast<double>(column) / static_cast<double>(d_model);
      const double angle = static_cast<double>(pos) / std::pow(10000.0, exponent);
      PE(pos, column) = column % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return PE;
}
