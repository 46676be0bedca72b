// Chapter 7. Exercise 7.2: label smoothing.
//
// The loss of logits [n, K] with labels i32 [n] is the mean over the rows of -sum_k q_k log p_k, with p =
// softmax(logits) and the smoothed target q: 1 - eps + eps / K at the label, eps / K at every other class. Write it
// with differentiable operations (log_softmax, products, sum). Constants are made by constant(tensor). q(i, j) of a
// Tensor can be written, and labels.data<i32>()[i] is label i.
// Grade it:  apps/run exercise 7.2
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

Variable my_smoothed_loss(const Variable& logits, const Tensor& labels, double eps) {
  return sum(logits) * 0.0;  // YOUR CODE: no target, and no loss
}
