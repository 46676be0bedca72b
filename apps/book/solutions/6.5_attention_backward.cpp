// Chapter 6. Solution of exercise 6.5: the backward of attention.
//
// O = P V with P = softmax(S) and S = Q K^T / sqrt(d_k). The forward is given, and dV. Write the rest of the backward:
// from dO to dQ and dK. Go back one equation at a time, with the rules of chapter 4: C = A B gives dA = dC B^T and
// dB = A^T dC; softmax gives dS_ij = P_ij (dP_ij - sum_l dP_il P_il).
//
// matmul(a, b, Trans::a) is a^T b, matmul(a, b, Trans::b) is a b^T; sum(x, {-1}, true) adds up each row and keeps the
// axis, with size 1. Shapes: Q [n, d_k], K [m, d_k], V [m, d_v], O [n, d_v].
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
    const Tensor& weights = P;
    const Tensor dP = matmul(dO, V, Trans::b);
    const Tensor dS = weights * (dP - sum(dP * weights, {-1}, true));
    dx.add(0, matmul(dS, K) * factor);
    dx.add(1, matmul(dS, Q, Trans::a) * factor);
    dx.add(2, matmul(weights, dO, Trans::a));
  }
};

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) { return apply(MyAttention{}, Q, K, V); }
