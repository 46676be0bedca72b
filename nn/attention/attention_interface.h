// Chapter 6. Attention: what a layer of an encoder, a decoder or a GPT asks of its attention, and what stands inside
// ours.
//
// A layer holds a Part<Attention> (nn/part.h). MultiHeadAttention is the one of the paper; one of your own derives from
// Attention, and is put in its place:
//   for (nn::EncoderLayer& layer : encoder.layers) layer.self_attn = MyAttention(64, 4, rng);
// What only self-attention of one kind needs (generation, cross-attention) may stay as it is here: an error that says
// so.
// Serves: nn/attention/attention.h
#pragma once

#include "core/mask.h"
#include "nn/attention/key_value_cache.h"
#include "nn/part.h"
#include "nn/pass.h"

namespace orrery::nn {

struct Attention : Module {
  /// Self-attention: x [B, n, d_model] to [B, n, d_model].
  /// `weights`, if given, becomes what each head mixed the values with, [B, h, n, n].
  Variable operator()(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights = nullptr) const {
    return self_attention(x, mask, pass, weights);
  }
  /// Cross-attention: x [B, n, d_model] with memory [B, m, d_model] to [B, n, d_model]; weights [B, h, n, m].
  Variable operator()(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass,
                      Tensor* weights = nullptr) const {
    return cross_attention(x, memory, mask, pass, weights);
  }

  virtual Variable self_attention(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights) const = 0;
  virtual Variable cross_attention(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass,
                                   Tensor* weights) const;

  // Generation, where nothing is recorded or dropped: the same attention, with keys and values kept between calls.

  /// An empty cache for self-attention over up to `capacity` positions.
  virtual KeyValueCache empty_cache(i64 B, i64 capacity, Dtype dtype) const;
  /// Causal self-attention of the n positions x [B, n, d_model] that follow those in `cache`, to which they are
  /// appended. Error, of `attend_to_cached` as well: a cache of other heads.
  virtual Variable extend(const Variable& x, KeyValueCache& cache) const;
  /// Keys and values of memory [B, m, d_model], for `attend_to_cached`, whose mask leaves out what is padding there.
  virtual KeyValueCache cache_memory(const Variable& memory) const;
  /// Cross-attention: x [B, n, d_model] over a memory given as its keys and values.
  virtual Variable attend_to_cached(const Variable& x, const KeyValueCache& memory, const Mask& mask) const;
};

// What stands in places inside MultiHeadAttention, where self-attention learns how far apart positions are.

/// What changes queries and keys between their projection and the scores: rotary positions, for one.
struct QueryKeyMap : Module {
  /// Q of every head, [B, n, h, d_k], at positions first, ..., first + n - 1; returns the same shape.
  virtual Variable queries(const Variable& Q, i64 first_position) const = 0;
  /// The same for K.
  virtual Variable keys(const Variable& K, i64 first_position) const { return queries(K, first_position); }
};

/// A bias on the scores of n queries, the last of m positions, with the keys at all m of them.
struct ScoreBias : Module {
  /// By distance, [h, n + m - 1], where entry e is for keys e - m + 1 positions after the query: a sequence of any
  /// length goes by in tiles. Or one that broadcasts to [B, h, n, m], which costs as much memory as the scores.
  virtual Variable operator()(i64 n, i64 m, Dtype dtype) const = 0;
};

}  // namespace orrery::nn
