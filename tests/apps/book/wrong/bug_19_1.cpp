// Chapter 6. A wrong repair of bug 19: a large number is subtracted, so that a query without a key sees all of them.
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
  const Variable weights = softmax(scores + (allowed_by(mask, scores) - 1.0) * 1e9);
  return {.output = matmul(weights, V), .weights = weights};
}
