// Chapter 6. Bug 2: attention with a mask.
//
// softmax(Q K^T / sqrt(d_k)) V, where a query sees only the keys that the mask allows. Q, K and V are
// [B, h, positions, d_k]. autograd/ops.h lists the operations that you may call.
// Its symptoms:  apps/run gradcheck --bug 2
// Grade it:  apps/run exercise bug.2
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
  const Variable weights = softmax(scores) * allowed_by(mask, scores);
  return {.output = matmul(weights, V), .weights = weights};
}
