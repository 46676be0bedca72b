// Chapter 6. Solution of bug 19: another attention with a mask.
//
// softmax(Q K^T / sqrt(d_k)) V, where a query sees only the keys that the mask allows. Q, K and V are
// [B, h, positions, d_k]. autograd/ops.h lists the operations that you may call.
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

using namespace orrery;

// Q K^T / sqrt(d_k).
Variable scaled_scores(const Variable& Q, const Variable& K) {
  return matmul(Q, K, Trans::b) * (1.0 / std::sqrt(static_cast<double>(Q.size(-1))));
}

AttentionResult my_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  const Variable scores = scaled_scores(Q, K);
  const Variable weights = masked_softmax(scores, mask);
  return {.output = matmul(weights, V), .weights = weights};
}
