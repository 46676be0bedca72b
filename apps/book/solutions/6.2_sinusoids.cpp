// Chapter 6. Solution of exercise 6.2: the sinusoidal encodings.
//
// Write the table PE, f64 [count, d_model], for an even d_model:
//
// PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_sinusoids(i64 count, i64 d_model) {
  Tensor PE = zeros({count, d_model}, f64);
  for (i64 pos = 0; pos < count; ++pos) {
    for (i64 two_i = 0; two_i < d_model; two_i += 2) {
      const double exponent = static_cast<double>(two_i) / static_cast<double>(d_model);
      const double angle = static_cast<double>(pos) / std::pow(10000.0, exponent);
      PE(pos, two_i) = std::sin(angle);
      PE(pos, two_i + 1) = std::cos(angle);
    }
  }
  return PE;
}
