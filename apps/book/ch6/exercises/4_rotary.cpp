// Chapter 6. Exercise 6.4: rotary positions.
//
// Turn each pair of numbers (x_2c, x_2c+1) of a row by the angle position * 10000^(-2c / d), where row i of x [n, d]
// has position first + i:
//
// y_2c = x_2c cos - x_2c+1 sin, y_2c+1 = x_2c sin + x_2c+1 cos
//
// x is f64, d even; x itself must stay as it is. (The program rotary.cpp pairs column c with column c + d / 2 instead.
// Both are in use.)
// Grade it:  apps/run exercise 6.4
// Serves: nn/positions/positional_encoding.h
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  Tensor y = x.clone();
  return y;  // YOUR CODE: turn each pair of numbers of y
}
