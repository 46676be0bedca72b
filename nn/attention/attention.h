// Chapter 6. MultiHeadAttention: h attention heads in parallel, each with its own projections of the sequence.
//
// Paper, section 3.2.2: "Multi-head attention allows the model to jointly attend to information from different
// representation subspaces at different positions."
//   MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O,   head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
//   Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V       (section 3.2.1; autograd/ops/attention.cpp)
// Self-attention: Q, K and V come from x [B, n, d_model]. Cross-attention: K and V come from memory [B, m, d_model].
// The W^Q, W^K and W^V of all heads are stacked in the weight of in_proj, which has h (2 d_k + d_v) rows. So one
// product computes Q, K and V. You can replace both linear maps (nn/layers/linear.h), change Q and K before their
// product (`query_key_map`), and add a bias to the scores (`score_bias`). Fused operations are used where they give the
// same result. Padding may hold anything (nn/attention/attention_interface.h); in cross-attention the queries must be
// finite.
// Read next: nn/attention/attention.cpp
#pragma once

#include "autograd/ops/fused/attention/packed_attention.h"
#include "nn/attention/attention_interface.h"
#include "nn/attention/key_value_cache.h"
#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"

namespace orrery::nn {

struct AttentionOptions {
  i64 d_k = 0, d_v = 0;  ///< sizes of a head's keys and values; 0 means d_model / num_heads
  double dropout = 0;    ///< on the attention weights
  bool bias = true;
  Init init = Init::xavier;
};

struct MultiHeadAttention : Attention {
  Linear in_proj;   // from d_model to h (2 d_k + d_v); its bias starts at 0
  Linear out_proj;  // from h d_v to d_model; its bias starts at 0
  i64 num_heads, d_k, d_v;
  double dropout;

  // Used by self-attention only.
  Part<QueryKeyMap> query_key_map;  // empty: Q and K are used as projected
  Part<ScoreBias> score_bias;       // empty: no bias
  Mask own_mask;                    // combined with the mask of each call: a window, for example

  /// Errors: num_heads below 1; a negative d_k or d_v; a d_model that is no multiple of num_heads, unless d_k and d_v
  /// are given; a dropout outside [0, 1).
  MultiHeadAttention(i64 d_model, i64 num_heads, Rng& rng, const AttentionOptions& options = {});
  MultiHeadAttention clone() const;  ///< a copy that shares nothing with this one

  Variable self_attention(const Variable& x, const Mask& mask, Pass& pass) const override;
  Variable cross_attention(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass) const override;
  // States: a KeyValueCache, and a MemoryCache (nn/attention/key_value_cache.h).
  AttentionState state(i64 B, i64 capacity, Dtype dtype) const override;
  AttentionState memory_state(const Variable& memory, const Mask& mask) const override;
  Variable next(const Variable& x, AttentionState& state) const override;
  void visit(Visitor& v) override;

 private:
  MultiHeadAttention(Linear in_proj, Linear out_proj, i64 num_heads, i64 d_k, i64 d_v, double dropout);
  KeyValueCache empty_cache(i64 B, i64 capacity, Dtype dtype) const;
  void check_cache(const KeyValueCache& cache) const;
  void check_cross() const;
  RowRange key_value_rows() const { return {num_heads * d_k, num_heads * (2 * d_k + d_v)}; }
  Variable positioned(const Variable& qkv, i64 first_position) const;
  Variable bias_of(i64 n, i64 m, Dtype dtype) const;
  HeadSizes heads() const { return {num_heads, d_k, d_v}; }
  Variable attend(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask,
                  const AttentionWeightOptions& options, Pass& pass) const;
};

}  // namespace orrery::nn
