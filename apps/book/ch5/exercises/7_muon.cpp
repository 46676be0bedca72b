// Chapter 5. Exercise 5.7: directions of one length.
//
// Muon: G is a gradient matrix, long in some directions and short in others. Return the matrix with the same
// directions, all about equally long: X begins as G divided by its norm, the root of the sum of its squares, and five
// times
//   A = X X^T
//   X <- (3.4445 I - 4.7750 A + 2.0315 A A) X
// with the unit matrix I, which you need not make: I X is X. matmul(a, b) is a b, and matmul(a, b, Trans::b) is a b^T.
// The norm is std::sqrt(sum_of_squares(G)). Tensors can be added, and multiplied by a number (A * 2.0).
// Grade it:  apps/run exercise 5.7
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_orthogonal(const Tensor& G) {
  return G;  // YOUR CODE: the lengths are as different as before
}
