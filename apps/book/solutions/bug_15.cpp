// Chapter 6. Solution of bug 15: attention.
//
// Scaled dot-product attention, equation 1 of the paper. Q, K and V are [B, h, positions, d_k]. autograd/ops.h lists
// the operations that you may call.
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"

using namespace orrery;

AttentionResult my_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(Q.size(-1)));
  const Variable weights = masked_softmax(matmul(Q, K, Trans::b) * scale, mask);
  return {.output = matmul(weights, V), .weights = weights};
}
