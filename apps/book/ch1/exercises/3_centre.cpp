// Chapter 1. Exercise 1.3: rows and columns of mean 0.
//
// Bring every column of a matrix x, [m, n], to mean 0 with one subtraction, then every row. No loops: mean(x, {axis})
// reduces an axis, mean(x, {axis}, true) keeps it with size 1, and x - y broadcasts.
// Grade it:  apps/run exercise 1.3
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_centred_columns(const Tensor& x) {
  return x;  // YOUR CODE
}

Tensor my_centred_rows(const Tensor& x) {
  return x;  // YOUR CODE
}
