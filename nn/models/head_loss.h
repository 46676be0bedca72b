// Chapter 7. The loss of a translator: the last layer and the cross entropy of its logits, as one operation.
//
// The logits have a number for each token of the vocabulary, more than anything else in the model. They are computed in
// chunks and never stored as a whole (autograd/ops/fused/linear/linear_cross_entropy.cpp), unless the last layer was
// replaced.
#pragma once

#include "autograd/ops/fused/linear/linear_cross_entropy.h"
#include "nn/layers/linear.h"

namespace orrery::nn {

/// The cross_entropy of the logits head(last) with `labels`. last [B, T, d], labels i32 [B, T]. Errors: those of
/// `cross_entropy`.
inline Variable head_loss(const Linear& head, const Variable& last, const Tensor& labels,
                          const CrossEntropyOptions& options) {
  return head.is_plain() ? linear_cross_entropy(last, head.weight, head.bias, labels, options)
                         : cross_entropy(head(last), labels, options);
}

}  // namespace orrery::nn
