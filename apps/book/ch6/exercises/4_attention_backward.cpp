// Chapter 6. Exercise 6.4: the backward of attention.
//
// Here no score gets beyond a cap c (Gemma 2, arXiv 2408.00118): O = P V with P = softmax(S) and
//
// S = c tanh(A), A = Q K^T / (c sqrt(d_k))
//
// The forward is given; it saves Q, K, V, S and P. Write the whole backward: from dO to dQ, dK and dV. Go back one
// equation at a time: softmax and the products are those of the text, and chapter 3 has the slope of tanh.
//
// matmul(a, b, Trans::a) is a^T b, matmul(a, b, Trans::b) is a b^T; sum(x, {-1}, true) adds up each row and keeps the
// axis, with size 1. Shapes: Q [n, d_k], K [m, d_k], V [m, d_v], O [n, d_v].
// Grade it:  apps/run exercise 6.4
#include <cmath>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyAttention {
  static constexpr std::string_view name = "my_attention";
  double cap = 1, factor = 1;  // c, and 1 / sqrt(d_k)
  Saved Q{}, K{}, V{}, S{}, P{};

  Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v) {
    Q = q;
    K = k;
    V = v;
    factor = 1 / std::sqrt(static_cast<double>(q.size(1)));
    const Tensor scores = tanh(constant(matmul(q, k, Trans::b) * (factor / cap))).value() * cap;
    const Tensor weights = softmax(constant(scores)).value();
    S = scores;
    P = weights;
    return matmul(weights, v);
  }

  void backward(const Tensor& dO, Grads& dx) {
    dx.add(0, Q.get());  // YOUR CODE: this is not dQ
    dx.add(1, K.get());  // YOUR CODE: this is not dK
    dx.add(2, V.get());  // YOUR CODE: this is not dV
  }
};

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V, double cap) {
  return apply(MyAttention{.cap = cap}, Q, K, V);
}
