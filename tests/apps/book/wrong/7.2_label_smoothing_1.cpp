// Chapter 7. A wrong answer to exercise 7.2: q adds up to less than 1.
// Expect: FAILED  four equal logits
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

Variable my_smoothed_loss(const Variable& logits, const Tensor& labels, double eps) {
  const i64 K = logits.size(1), n = logits.size(0);
  Tensor q = full({n, K}, eps / static_cast<double>(K), f64);
  for (i64 i = 0; i < n; ++i) q(i, labels.data<i32>()[i]) = 1 - eps;
  return sum(constant(q) * log_softmax(logits)) * (-1 / static_cast<double>(n));
}
