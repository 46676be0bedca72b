// Chapter 5. Exercise 5.1: how wide to draw.
//
// Return the bound a of the uniform distribution on [-a, a] that the weights of y = x W^T are drawn from. xavier_bound:
// the variance of the weights is 2 / (fan_in + fan_out). relu_bound: here x = relu(z), z and -z are equally likely, and
// the mean square of y is to be that of z; fan_in is how many x each y adds up.
// Grade it:  apps/run exercise 5.1
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

double xavier_bound(i64 fan_in, i64 fan_out) {
  return 1;  // YOUR CODE: too wide
}

// So that z -> relu(z) W^T keeps the mean square of z.
double relu_bound(i64 fan_in) {
  return 1;  // YOUR CODE: too wide
}
