// Chapter 6. Exercise 6.2: scaled dot-product attention.
//
// Write the paper's equation (1) for one head: softmax(Q K^T / sqrt(d_k)) V, with Q [n, d_k], K [m, d_k], V [m, d_v]
// and the result [n, d_v]. Use differentiable operations (autograd/ops.h): matmul, softmax, the product of a Variable
// and a number. Then its gradient comes for free.
// Grade it:  apps/run exercise 6.2
#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) {
  return matmul(matmul(Q, K, Trans::b), V);  // YOUR CODE: scores are no weights yet
}
