// Chapter 6. MultiHeadAttention: h heads look at the sequence at once, each through projections of its own.
//
// Paper, section 3.2.2: "Multi-head attention allows the model to jointly attend to information from different
// representation subspaces at different positions."
//   MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O,   head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)
// Self-attention: Q, K and V come from x [B, n, d_model]. Cross-attention: K and V come from memory [B, m, d_model].
// All heads' W^Q, W^K, W^V stand one below the other in in_proj_weight, h (2 d_k + d_v) rows: one product makes them.
// Positions that a padding mask cuts off count as zeros, so that not even NaN there reaches an output or a gradient.
// Read next: nn/attention/attention.cpp
#pragma once

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

struct MultiHeadAttention : Module {
  Variable in_proj_weight;  // [h (2 d_k + d_v), d_model]
  Variable in_proj_bias;    // [h (2 d_k + d_v)], starts at 0; not defined without bias
  Linear out_proj;          // from h d_v to d_model; its bias starts at 0
  i64 num_heads, d_k, d_v;
  double dropout;

  MultiHeadAttention(i64 d_model, i64 num_heads, Rng& rng, const AttentionOptions& options = {});
  /// How many numbers such a layer learns.
  static double count(i64 d_model, i64 num_heads, const AttentionOptions& options);
  /// Self-attention: x [B, n, d_model] to [B, n, d_model].
  /// `weights`, if given, becomes softmax(Q K^T / sqrt(d_k)) of every head before dropout, [B, h, n, n].
  Variable operator()(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights = nullptr) const;
  /// Cross-attention: x [B, n, d_model] with memory [B, m, d_model] to [B, n, d_model]; weights [B, h, n, m].
  Variable operator()(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass,
                      Tensor* weights = nullptr) const;

  // Generation, where nothing is recorded or dropped: the same attention, with keys and values kept between calls.

  /// An empty cache for self-attention over up to `capacity` positions.
  KeyValueCache cache(i64 B, i64 capacity) const;
  /// Causal self-attention of the n positions x [B, n, d_model] that follow those in `cache`, to which they are
  /// appended. Error, of `over` as well: a cache of other heads.
  Variable next(const Variable& x, KeyValueCache& cache) const;
  /// Keys and values of memory [B, m, d_model], for `over`, whose mask leaves out what is padding there.
  KeyValueCache cache_of(const Variable& memory) const;
  /// Cross-attention: x [B, n, d_model] over a memory given as its keys and values.
  Variable over(const Variable& x, const KeyValueCache& memory, const Mask& mask) const;
  void visit(Visitor& v) override {
    v("in_proj_weight", in_proj_weight);
    v("in_proj_bias", in_proj_bias);
    v("out_proj", out_proj);
  }

 private:
  void check_cache(const KeyValueCache& cache) const;
  Variable attend(const Variable& Q, const Variable& K, const Variable& V, const Mask& mask, double p, const Draw& draw,
                  Tensor* weights) const;
};

}  // namespace orrery::nn
