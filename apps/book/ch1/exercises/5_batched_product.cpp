// Chapter 1. Exercise 1.5: products of many matrices.
//
// Multiply with loops, without matmul: c(b, i, j) is the sum over p of left(b, i, p) right(b, p, j). left is f64
// [B, m, k]; right is either [B, k, n], a matrix for each b, or [k, n], one matrix that all share. Return [B, m, n].
// Element (b, i, j) of a tensor is read as x(b, i, j), and written as x(b, i, j) = 2.5 if x is not const. Inner sizes
// that differ are an error: check(condition, "my_product", "why") throws unless the condition holds.
// Grade it:  apps/run exercise 1.5
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_product(const Tensor& left, const Tensor& right) {
  const i64 B = left.size(0), m = left.size(1), n = right.size(-1);
  return zeros({B, m, n}, f64);  // YOUR CODE
}
