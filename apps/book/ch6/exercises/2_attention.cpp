// Chapter 6. Exercise 6.2: scaled dot-product attention.
//
// Write the paper's equation (1) for one head: softmax(Q K^T / sqrt(d_k)) V, with Q [n, d_k], K [m, d_k], V [m, d_v]
// and the result [n, d_v]. `allowed` is a mask, i32 [n, m], like that of 6.1: a key has the weight 0 where it holds 0.
// A query that sees no key gets the output 0.
//
// Use differentiable operations (autograd/ops.h): matmul, softmax, products and sums. Then the gradient comes for free.
// A Variable can be multiplied by a number, and a table such as allowed.to(f64) can be added to it or multiplied with
// it, element by element.
// Grade it:  apps/run exercise 6.2
#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V, const Tensor& allowed) {
  return matmul(matmul(Q, K, Trans::b), V);  // YOUR CODE: scores are no weights yet
}
