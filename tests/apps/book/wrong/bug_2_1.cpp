// Chapter 6. A wrong repair of bug 2: the weights that are left are divided by their sum, which may be 0.
// Expect: FAILED  weights and gradients of queries that see no key
#include <cmath>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

using namespace orrery;

// Q K^T / sqrt(d_k).
Variable scaled_scores(const Variable& Q, const Variable& K) {
  return matmul(Q, K, Trans::b) * (1.0 / std::sqrt(static_cast<double>(Q.size(-1))));
}

// 1 where `mask` allows, else 0.
Variable allowed_by(const Mask& mask, const Variable& scores) {
  const auto [B, h, n, m] = dims<4>(scores.value(), "mask");
  Tensor allowed = zeros(scores.shape(), f64);
  for (i64 i = 0; i < B * h * n * m; ++i) {
    allowed.write<double>()[i] = mask.allowed(i / (h * n * m), i / (n * m) % h, i / m % n, i % m, n, m);
  }
  return constant(allowed.to(scores.dtype()));
}

AttentionResult my_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask) {
  const Variable scores = scaled_scores(Q, K);
  const Variable kept = softmax(scores) * allowed_by(mask, scores), weights = kept / sum(kept, {-1}, true);
  return {.output = matmul(weights, V), .weights = weights};
}
