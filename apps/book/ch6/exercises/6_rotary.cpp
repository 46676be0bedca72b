// Chapter 6. Exercise 6.6: rotary positions.
//
// Turn each pair of numbers (x_2i, x_2i+1) of a row by the angle pos * 10000^(-2i / d), where row r of x [n, d] has
// position pos = first + r:
//
// y_2i = x_2i cos - x_2i+1 sin, y_2i+1 = x_2i sin + x_2i+1 cos
//
// x is f64, d even; x itself must stay as it is. (The program rotary.cpp pairs column i with column i + d / 2 instead.
// Both are in use.)
// Grade it:  apps/run exercise 6.6
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_rotary(const Tensor& x, i64 first) {
  return {};  // YOUR CODE: a tensor of its own, with each pair of numbers turned
}
