// Chapter 6. A wrong repair of bug 15: the scores are divided by the root of the values' size.
// Expect: FAILED  the weights of two keys, d_k = 4
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"

using namespace orrery;

AttentionResult my_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(V.size(-1)));
  const Variable weights = masked_softmax(matmul(Q, K, Trans::b) * scale, mask);
  return {.output = matmul(weights, V), .weights = weights};
}
