// Chapter 6. MultiHeadAttention: h heads look at the sequence at once, each through projections of its own.
//
// Paper, section 3.2.2: "Multi-head attention allows the model to jointly attend to information from different
// representation subspaces at different positions."
//   MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O,   head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
// Self-attention: Q, K and V come from x [B, n, d_model]. Cross-attention: K and V come from memory [B, m, d_model].
// All heads' W^Q, W^K, W^V stand one below the other in in_proj's weight, h (2 d_k + d_v) rows: one product makes them.
// What can be replaced: both linear maps (nn/layers/linear.h), what happens to Q and K before their product
// (`query_key_map`), and a bias on the scores (`score_bias`). Fused forms are taken where they compute the same.
// Positions that a padding mask cuts off count as zeros, so that not even NaN there reaches an output or a gradient.
// Read next: nn/attention/attention.cpp
#pragma once

#include "nn/attention/attention_interface.h"
#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"

namespace orrery::nn {

/// What the linear maps are called in files: as torch.nn.MultiheadAttention's, or as GPT-2's, which lie there as
/// [in, out].
enum class AttentionNames { pytorch, gpt2 };

struct AttentionOptions {
  i64 d_k = 0, d_v = 0;  ///< sizes of a head's keys and values; 0 means d_model / num_heads
  double dropout = 0;    ///< on the attention weights
  bool bias = true;
  Init init = Init::xavier;
  AttentionNames names = AttentionNames::pytorch;
};

struct MultiHeadAttention : Attention {
  Linear in_proj;   // from d_model to h (2 d_k + d_v); its bias starts at 0
  Linear out_proj;  // from h d_v to d_model; its bias starts at 0
  i64 num_heads, d_k, d_v;
  double dropout;
  AttentionNames names = AttentionNames::pytorch;

  // Of self-attention alone.
  Part<QueryKeyMap> query_key_map;  // nothing: the embeddings know the positions
  Part<ScoreBias> score_bias;       // nothing: none
  Mask own_mask;                    // what this layer may see of what a call's mask allows: a window

  MultiHeadAttention(i64 d_model, i64 num_heads, Rng& rng, const AttentionOptions& options = {});
  /// How many numbers such a layer learns.
  using Module::parameter_count;
  static double parameter_count(i64 d_model, i64 num_heads, const AttentionOptions& options);
  /// An attention of its own with the same values and parts.
  MultiHeadAttention clone() const;

  Variable self_attention(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights) const override;
  Variable cross_attention(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass,
                           Tensor* weights) const override;
  KeyValueCache empty_cache(i64 B, i64 capacity, Dtype dtype) const override;
  Variable extend(const Variable& x, KeyValueCache& cache) const override;
  KeyValueCache cache_memory(const Variable& memory) const override;
  Variable attend_to_cached(const Variable& x, const KeyValueCache& memory, const Mask& mask) const override;
  void visit(Visitor& v) override;

 private:
  MultiHeadAttention(Linear in_proj, Linear out_proj, i64 num_heads, i64 d_k, i64 d_v, double dropout);
  void check_cache(const KeyValueCache& cache) const;
  void check_cross() const;
  RowRange key_value_rows() const { return {num_heads * d_k, num_heads * (2 * d_k + d_v)}; }
  Variable positioned(const Variable& qkv, i64 first_position) const;
  Variable bias_of(i64 n, i64 m, Dtype dtype) const;
  Variable attend(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask, double p, const Draw& draw,
                  const Variable& bias, Tensor* weights) const;
};

}  // namespace orrery::nn
