// Chapter 6. A wrong answer to exercise 6.5: softmax as if each weight depended on its own score alone.
// Expect: FAILED  where all keys are equal to 1
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
    const Tensor dS = weights * dP;
    dx.add(0, matmul(dS, K) * factor);
    dx.add(1, matmul(dS, Q, Trans::a) * factor);
    dx.add(2, matmul(weights, dO, Trans::a));
  }
};

Variable my_attention(const Variable& Q, const Variable& K, const Variable& V) { return apply(MyAttention{}, Q, K, V); }
