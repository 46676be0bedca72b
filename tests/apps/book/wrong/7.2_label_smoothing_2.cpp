// Chapter 7. A wrong answer to exercise 7.2: eps is shared out among the wrong classes alone.
// Expect: FAILED  one row of five classes
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

Variable my_smoothed_loss(const Variable& logits, const Tensor& labels, double eps) {
  const i64 K = logits.size(1), n = logits.size(0);
  Tensor q = full({n, K}, eps / (static_cast<double>(K) - 1), f64);
  for (i64 i = 0; i < n; ++i) q(i, labels.data<i32>()[i]) = 1 - eps;
  return sum(constant(q) * log_softmax(logits)) * (-1 / static_cast<double>(n));
}
