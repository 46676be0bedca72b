// Chapter 8. Attention of all heads at once, read from packed products and written back to one.
#pragma once

#include "autograd/ops/attention.h"

namespace orrery {

/// h heads, whose keys have d_k numbers and whose values have d_v.
struct HeadSizes {
  i64 h, d_k, d_v;
};

/// Attention of all heads on a packed product, as projections return it: from qkv [B, n, h (2 d_k + d_v)] to
/// [B, n, h d_v], without copying heads. A bias must be by distance. More than 512 keys are processed in tiles, so that
/// memory grows linearly with the length (autograd/ops/fused/attention/tiled_attention.h). Errors: shapes, a mask or a
/// bias that do not fit; no head, or heads of size 0; p outside [0, 1].
Variable packed_attention(const Variable& qkv, const HeadSizes& heads, const Mask& mask,
                          const AttentionWeightOptions& options = {});
/// The same with the queries of one sequence, [B, n, h d_k], and the keys and values of another, [B, m, h (d_k + d_v)].
Variable packed_attention(const Variable& q, const Variable& kv, const HeadSizes& heads, const Mask& mask,
                          const AttentionWeightOptions& options = {});

}  // namespace orrery
