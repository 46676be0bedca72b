// Chapter 7. Transformer: the whole model of the paper, from token ids to scores for the next token.
//
// Paper, section 3: "the encoder maps an input sequence of symbol representations (x1, ..., xn) to a sequence of
// continuous representations z = (z1, ..., zn). Given z, the decoder then generates an output sequence (y1, ..., ym) of
// symbols one element at a time." Section 3.4: "we share the same weight matrix between the two embedding layers and
// the pre-softmax linear transformation [...]. In the embedding layers, we multiply those weights by sqrt(d_model)."
//   source [B, S] -> src_embed * sqrt(d_model) + positions -> encoder -> memory [B, S, d_model]
//   target [B, T] -> tgt_embed * sqrt(d_model) + positions -> decoder(memory) -> generator -> logits [B, T, K]
// K is tgt_vocab_size. Row t of the logits predicts token t + 1 of the target, so training leaves out the last token of
// the target.
// Read next: nn/models/transformer.cpp
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "nn/layers/embedding.h"
#include "nn/models/decoder.h"
#include "nn/models/transformer_config.h"

namespace orrery::nn {

/// What each of the three attentions may see.
struct TransformerMasks {
  Mask source;  ///< encoder self-attention, [B, h, S, S]
  Mask target;  ///< decoder self-attention, [B, h, T, T]; must include Mask::causal()
  Mask memory;  ///< decoder cross-attention, [B, h, T, S]
};

/// Attention weights before dropout, one tensor for each layer of each call.
struct AttentionMaps {
  std::vector<Tensor> encoder;        // [B, h, S, S]
  std::vector<Tensor> decoder_self;   // [B, h, T, T]
  std::vector<Tensor> decoder_cross;  // [B, h, T, S]
};

struct Transformer : Module {
  TransformerConfig config;
  Embedding src_embed, tgt_embed;
  PositionalEncoding src_positions, tgt_positions;
  Encoder encoder;
  Decoder decoder;
  Linear generator;  // "the pre-softmax linear transformation"
  Dropout dropout;

  /// Draws every weight from `rng`. Errors: whatever `config.validate()` rejects.
  Transformer(const TransformerConfig& config, Rng& rng);

  /// Scores for every next token: source i32 [B, S] and target i32 [B, T] to logits [B, T, tgt_vocab_size], with the
  /// masks that follow from `pad_id`. If `maps` is given, the attention weights are appended to it.
  Variable operator()(const Tensor& source, const Tensor& target, Pass& pass, AttentionMaps* maps = nullptr) const;
  /// The same with the caller's own masks.
  Variable operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks, Pass& pass,
                      AttentionMaps* maps = nullptr) const;

  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `target`. The logits are
  /// computed in chunks and never stored as a whole.
  Variable loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                const CrossEntropyOptions& options = {}) const;

  /// The memory of a source, which is the encoder's output: [B, S, d_model].
  Variable encode(const Tensor& source, const Mask& source_mask, Pass& pass, AttentionMaps* maps = nullptr) const;
  /// The decoder's output for a target, given the memory: [B, T, d_model]. `generator` turns it into logits.
  Variable hidden(const Tensor& target, const Variable& memory, const Mask& target_mask, const Mask& memory_mask,
                  Pass& pass, AttentionMaps* maps = nullptr) const;
  /// Logits [B, T, tgt_vocab_size] of a target, given the memory.
  Variable decode(const Tensor& target, const Variable& memory, const Mask& target_mask, const Mask& memory_mask,
                  Pass& pass, AttentionMaps* maps = nullptr) const;

  /// The masks that follow from `pad_id`: no position sees trailing padding, and no target position sees later ones.
  TransformerMasks masks(const Tensor& source, const Tensor& target) const;
  /// The mask of the padding only. Without a pad_id it allows everything.
  Mask padding(const Tensor& ids) const;

  Transformer clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(Visitor& v) override;

 private:
  Variable embed(const Tensor& ids, const Embedding& table, const PositionalEncoding& positions, Pass& pass) const;
};

}  // namespace orrery::nn
