// Chapter 6. A wrong answer to exercise 6.5: the factor 1 / sqrt(d_k) is missing on the way back.
// Expect: FAILED  dQ
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
    dx.add(0, matmul(dS, K));
    dx.add(1, matmul(dS, Q, Trans::a));
    dx.add(2, matmul(weights, dO, Trans::a));
  }
};

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) { return apply(MyAttention{}, Q, K, V); }
