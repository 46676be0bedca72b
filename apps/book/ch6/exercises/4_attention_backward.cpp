// Chapter 6. Exercise 6.4: the backward of attention.
//
// O = P V with P = softmax(S) and S = Q K^T / sqrt(d_k). The forward is given, and dV. Write the rest of the backward:
// from dO to dQ and dK. Go back one equation at a time: derive what a product and a softmax of each row give, or recall
// it from chapter 4.
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
  Saved Q, K, V, P;
  double factor = 1;  // 1 / sqrt(d_k)

  Tensor forward(const Tensor& q, const Tensor& k, const Tensor& v) {
    Q = q;
    K = k;
    V = v;
    factor = 1 / std::sqrt(static_cast<double>(q.size(1)));
    const Tensor weights = softmax(constant(matmul(q, k, Trans::b) * factor)).value();
    P = weights;
    return matmul(weights, v);
  }

  void backward(const Tensor& dO, Grads& dx) {
    dx.add(0, Q.get());  // YOUR CODE: this is not dQ
    dx.add(1, K.get());  // YOUR CODE: this is not dK
    dx.add(2, matmul(P, dO, Trans::a));
  }
};

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) { return apply(MyAttention{}, Q, K, V); }
