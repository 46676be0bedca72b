// Chapter 6. Exercise 6.5: the sinusoidal encodings.
//
// Write the table PE, f64 [count, d_model], for an even d_model:
//
// PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))
// Grade it:  apps/run exercise 6.5
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_sinusoids(i64 count, i64 d_model) {
  Tensor PE = zeros({count, d_model}, f64);
  // YOUR CODE: set PE(pos, column) for every position and every column
  return PE;
}
