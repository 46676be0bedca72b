// Chapter 6. Bug 15: attention.
//
// Scaled dot-product attention, equation 1 of the paper. Q, K and V are [B, h, positions, d_k]. autograd/ops.h lists
// the operations that you may call.
// Its symptoms:  apps/run gradcheck --bug 15
// Grade it:  apps/run exercise bug.15
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"

using namespace orrery;

AttentionResult my_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  const Variable weights = masked_softmax(matmul(Q, K, Trans::b), mask);
  return {.output = matmul(weights, V), .weights = weights};
}
