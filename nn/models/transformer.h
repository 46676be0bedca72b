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
// Paper, table 3:           N  d_model  d_ff  h  d_k  d_v  P_drop  parameters
//                    base   6      512  2048  8   64   64     0.1     65 * 10^6
//                    big    6     1024  4096  16  64   64     0.3    213 * 10^6
// with one vocabulary of about 37,000 tokens for both languages (section 5.1) and shared embeddings (section 3.4).
// Exact counts of these presets with 37,000 tokens, biases everywhere: 63,119,496 and 214,282,376.
// Read next: nn/models/transformer.cpp
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "nn/attention/copy.h"
#include "nn/layers/embedding.h"
#include "nn/models/stack.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::nn {

struct TransformerConfig {
  i64 src_vocab_size = 0, tgt_vocab_size = 0;
  LayerOptions layer{};
  i64 num_encoder_layers = 6, num_decoder_layers = 6;
  bool final_norm = false;        ///< one more norm after each stack, as torch.nn.Transformer always has
  i64 max_len = 1024;             ///< positions; a longer sequence is an error
  i32 pad_id = 0;                 ///< trailing tokens of this id are padding; -1: there is none
  bool share_embeddings = false;  ///< one matrix for both embeddings and the generator (section 3.4)
  bool generator_bias = true;     ///< a bias of the logits; there is none either if the layers have no biases
  Positions positions = Positions::sinusoidal;
  bool copy = false;  ///< words can also be copied from the source (nn/attention/copy.h); for one vocabulary

  /// From JSON text, where absent fields keep their defaults. Errors: text that is not a JSON object, unknown fields,
  /// values of a wrong type, and those of `validate`.
  static TransformerConfig of_json(const std::string& json);
  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// `layer` with the model's defaults in all fields without a value.
  LayerOptions layers() const;
  /// The options of the generator.
  LinearOptions generator() const;
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  /// The numbers in the model's tables of sinusoids, f64, which are in memory but in no file.
  double table_numbers() const;
  /// True if both describe the same model. A field without a value equals its default.
  friend bool operator==(const TransformerConfig& a, const TransformerConfig& b);
};

/// Calls field(about, value) for every field (nn/models/fields.h).
template <class F> void for_each_field(TransformerConfig& config, F&& field) {
  field({"src_vocab_size", Rule::positive}, config.src_vocab_size);
  field({"tgt_vocab_size", Rule::positive}, config.tgt_vocab_size);
  for_each_field(config.layer, field);
  field({"num_encoder_layers", Rule::positive, 96, "Encoder layers"}, config.num_encoder_layers);
  field({"num_decoder_layers", Rule::positive, 96, "Decoder layers"}, config.num_decoder_layers);
  field({"final_norm", Rule::any, 1, "One more normalisation after each stack"}, config.final_norm);
  field({"max_len", Rule::positive}, config.max_len);
  field({"pad_id"}, config.pad_id);
  field({"share_embeddings"}, config.share_embeddings);
  field({"generator_bias"}, config.generator_bias);
  field({"positions"}, config.positions);
  field({"copy", Rule::any, 1, "Copy words of the source, besides writing those of the vocabulary"}, config.copy);
}

/// Every field as JSON, for a file's metadata.
std::string to_json(const TransformerConfig& config);
/// The paper's models, with one vocabulary for both languages, and dropout as in section 5.4, not inside sub-layers.
TransformerConfig base(i64 vocab_size);
TransformerConfig big(i64 vocab_size);
/// 4 + 4 layers of 128: for Multi30k's 29,000 pairs ("Good for Misconceived Reasons", Wu et al. 2021).
/// As there, the logits have no bias.
TransformerConfig tiny(i64 vocab_size);

/// What each of the three attentions may see.
struct TransformerMasks {
  Mask source;  ///< encoder self-attention, [B, h, S, S]
  Mask target;  ///< decoder self-attention, [B, h, T, T]; must include Mask::causal()
  Mask memory;  ///< decoder cross-attention, [B, h, T, S]
};

struct Transformer : Module {
  TransformerConfig config;
  Embedding src_embed, tgt_embed;
  PositionalEncoding src_positions, tgt_positions;
  Encoder encoder;
  Decoder decoder;
  Linear generator;  // "the pre-softmax linear transformation"
  Dropout dropout;
  std::optional<Copy> copy;

  /// Draws every weight from `rng`. Errors: whatever `config.validate()` rejects.
  Transformer(const TransformerConfig& config, Rng& rng);

  /// Scores for every next token: source i32 [B, S] and target i32 [B, T] to logits [B, T, tgt_vocab_size], with the
  /// masks that follow from `pad_id`.
  Variable operator()(const Tensor& source, const Tensor& target, Pass& pass) const;
  /// The same with the caller's own masks.
  Variable operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks, Pass& pass) const;

  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `target`. The logits are
  /// computed in chunks and never stored as a whole, unless words can be copied.
  Variable loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                const CrossEntropyOptions& options = {}) const;

  /// The memory of a source, which is the encoder's output: [B, S, d_model].
  Variable encode(const Tensor& source, const Mask& source_mask, Pass& pass) const;
  /// The decoder's output for a target, given the memory: [B, T, d_model].
  Variable hidden(const Tensor& target, const Variable& memory, const Mask& target_mask, const Mask& memory_mask,
                  Pass& pass) const;
  /// Logits [B, T, tgt_vocab_size] of the decoder's output for a target, with what can be copied. Error: that is of
  /// another model.
  Variable logits(const Variable& hidden, const std::optional<CopySource>& copied, const Tensor& target) const;
  /// What can be copied from a source, given its memory; nothing without `copy`.
  std::optional<CopySource> copied(const Tensor& source, const Variable& memory, const Mask& memory_mask) const;
  /// Logits of a target, given the memory, and the source if words are copied; then the memory's mask may only be
  /// padding.
  Variable decode(const Tensor& target, const Variable& memory, const Mask& target_mask, const Mask& memory_mask,
                  Pass& pass, const Tensor& source = {}) const;

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
