// Chapter 6. Attention: the interface between a layer and its attention, and those of the replaceable parts inside
// MultiHeadAttention.
//
// The layers of encoders, decoders and GPTs hold a Part<Attention> (nn/part.h). MultiHeadAttention is the attention of
// the paper. Your own attention derives from Attention and is assigned to the part:
//   for (nn::EncoderLayer& layer : encoder.layers) layer.self_attn = MyAttention(64, 4, rng);
// It must define self_attention and visit. The other functions, if not defined, throw an error that says so.
// Positions that the mask pads (of x in self-attention, of memory in cross-attention) reach these functions as zeros if
// they hold NaN, infinity or huge numbers (nn/layers/padding.h).
#pragma once

#include "core/mask.h"
#include "nn/attention/key_value_cache.h"
#include "nn/layers/padding.h"
#include "nn/part.h"
#include "nn/pass.h"

namespace orrery::nn {

struct Attention : Module {
  /// Self-attention: x [B, n, d_model] to [B, n, d_model]. `pass.recorder` receives weights [B, h, n, n].
  Variable operator()(const Variable& x, const Mask& mask, Pass& pass) const {
    return self_attention(with_harmless_padding(x, mask), mask, pass);
  }
  /// Cross-attention: x [B, n, d_model] with memory [B, m, d_model] to [B, n, d_model]; weights [B, h, n, m].
  Variable operator()(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass) const {
    return cross_attention(x, with_harmless_padding(memory, mask), mask, pass);
  }

  /// The attention itself, for layers whose x has come through `with_harmless_padding` already.
  virtual Variable self_attention(const Variable& x, const Mask& mask, Pass& pass) const = 0;
  virtual Variable cross_attention(const Variable& x, const Variable& memory, const Mask& mask, Pass& pass) const;

  // For generation: the same attention, with keys and values kept between calls. Nothing is recorded, and no dropout is
  // applied.

  /// An empty cache for self-attention over up to `capacity` positions.
  virtual KeyValueCache empty_cache(i64 B, i64 capacity, Dtype dtype) const;
  /// Appends the n positions x [B, n, d_model] to `cache`, then computes causal self-attention for them. Error, also of
  /// `attend_to_cached`: a cache made for other heads.
  virtual Variable extend(const Variable& x, KeyValueCache& cache) const;
  /// Keys and values of memory [B, m, d_model], for `attend_to_cached`. The mask given there excludes padding.
  virtual KeyValueCache cache_memory(const Variable& memory) const;
  /// Cross-attention of x [B, n, d_model] to a memory, given as its cached keys and values.
  virtual Variable attend_to_cached(const Variable& x, const KeyValueCache& memory, const Mask& mask) const;
};

// Replaceable parts of MultiHeadAttention, with which self-attention takes positions into account.

/// Changes queries and keys after their projection and before the scores. Rotary positions are an example.
struct QueryKeyMap : Module {
  /// Q of every head, [B, n, h, d_k], at positions first_position, first_position + 1, ...; returns the same shape.
  virtual Variable queries(const Variable& Q, i64 first_position) const = 0;
  /// The same for K.
  virtual Variable keys(const Variable& K, i64 first_position) const { return queries(K, first_position); }
};

/// A bias on the scores of n queries with m keys. The queries are the last n of the m positions.
struct ScoreBias : Module {
  /// Either by distance, [h, n + m - 1], where entry e is for keys e - m + 1 positions after the query; long sequences
  /// are then computed in tiles. Or a shape of another number of axes that broadcasts to [B, h, n, m], such as
  /// [1, n, m]; this takes as much memory as the scores.
  virtual Variable operator()(i64 n, i64 m, Dtype dtype) const = 0;
};

}  // namespace orrery::nn
