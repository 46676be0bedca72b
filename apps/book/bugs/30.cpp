// Chapter 6. Bug 30: attention with two ways to hide keys.
//
// `mask` hides what the caller wants to be hidden, such as padding; `causal` hides what comes after the query.
// Its symptoms:  apps/run gradcheck --bug 30
// Grade it:  apps/run exercise bug.30
#include "autograd/ops.h"
#include "core/mask.h"

using namespace orrery;

AttentionResult my_attention(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask, bool causal) {
  const Mask both = causal && mask.allows_all() ? Mask::causal() : mask;
  return attention(Q, K, V, both);
}
