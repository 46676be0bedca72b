// Chapter 7. Solution of exercise 7.2: label smoothing.
//
// The loss of logits [n, K] with labels i32 [n] is the mean over the rows of -sum_k q_k log p_k, with p =
// softmax(logits) and the smoothed target q: 1 - eps + eps / K at the label, eps / K at every other class. Write it
// with differentiable operations (log_softmax, products, sum). Constants are made by constant(tensor).
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

Variable my_smoothed_loss(const Variable& logits, const Tensor& labels, double eps) {
  const i64 K = logits.size(1), n = logits.size(0);
  Tensor q = full({n, K}, eps / static_cast<double>(K), f64);
  for (i64 i = 0; i < n; ++i) q(i, labels.data<i32>()[i]) = 1 - eps + eps / static_cast<double>(K);
  return sum(constant(q) * log_softmax(logits)) * (-1 / static_cast<double>(n));
}
