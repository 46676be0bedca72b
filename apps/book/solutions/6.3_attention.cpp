// Chapter 6. Solution of exercise 6.3: scaled dot-product attention.
//
// Write the paper's equation (1) for one head: softmax(Q K^T / sqrt(d_k)) V, with Q [n, d_k], K [m, d_k], V [m, d_v]
// and the result [n, d_v]. Use differentiable operations (autograd/ops.h): matmul, softmax, the product of a Variable
// and a number. Then its gradient comes for free.
#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) {
  const double d_k = static_cast<double>(Q.size(-1));
  const Variable scores = matmul(Q, K, Trans::b) * (1 / std::sqrt(d_k));
  return matmul(softmax(scores), V);
}
