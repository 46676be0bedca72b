// Chapter 8. Attention of all heads at once, read from packed products and written back to one.
//
// Serves: autograd/ops/fused/tiled_attention.h
#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

class Mask;

/// Attention of all heads on a packed product, as projections return it: from qkv [B, n, h (2 d_k + d_v)] to
/// [B, n, h d_v], without copying heads. The weights are dropped out with probability p. The `bias` is by distance (see
/// `by_distance`). More than 512 keys are processed in tiles, so that memory grows linearly with the length
/// (autograd/ops/fused/tiled_attention.h).
Variable packed_attention(const Variable& qkv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask, double p = 0,
                          const Draw& draw = {}, const Variable& bias = {});
/// The same with the queries of one sequence, [B, n, h d_k], and the keys and values of another, [B, m, h (d_k + d_v)].
Variable packed_attention(const Variable& q, const Variable& kv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask,
                          double p = 0, const Draw& draw = {}, const Variable& bias = {});

}  // namespace orrery
