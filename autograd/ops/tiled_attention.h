// Chapter 8. Attention in tiles that never holds all scores: the form `packed_attention` takes for long sequences.
//
// Only tests and the gradient checker call it by name, with tiles small enough that a short sequence has several.
// Read next: autograd/ops/tiled_attention.cpp
#pragma once

#include "autograd/ops.h"
#include "core/scores.h"

namespace orrery {

/// Queries and keys whose scores are held at a time: B_r and B_c of the paper.
struct TileSizes {
  i64 queries = query_tile;  ///< a multiple of `lane_multiple`, at most `query_tile`
  i64 keys = 256;
};

/// `packed_attention` (autograd/ops.h) with memory linear in n + m: ops/tiled_attention.cpp.
Variable tiled_attention(const Variable& qkv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask, double p = 0,
                         const Draw& draw = {}, TileSizes tile = {});
Variable tiled_attention(const Variable& q, const Variable& kv, i64 num_heads, i64 d_k, i64 d_v, const Mask& mask,
                         double p = 0, const Draw& draw = {}, TileSizes tile = {});

}  // namespace orrery
