// Chapter 7. RecurrentTranslator: a bidirectional GRU reads the source, a GRU with attention writes the target.
//
// Bahdanau, Cho, Bengio 2015 ("Neural Machine Translation by Jointly Learning to Align and Translate"), section 3: "The
// new architecture consists of a bidirectional RNN as an encoder [...] and a decoder that emulates searching through a
// source sentence during decoding a translation". In the form of tutorials 3 and 4 of
// github.com/bentrevett/pytorch-seq2seq:
//   source [B, S] -> src_embed -> encoder: memory m [B, S, 2 E], and s_0 = tanh(bridge([last forward; last backward]))
//   target [B, T] -> tgt_embed: y_t -> decoder: c_t = what s_{t-1} attends to, s_t = gru([y_t; c_t], s_{t-1})
//   logits_t = generator([s_t; c_t; y_t])       or, with d_output, generator(tanh(output([s_t; c_t; y_t])))
// E is d_encoder, the units of one direction; a state s_t has H = d_decoder units.
// (The paper's bridge reads the first backward state alone, and its last layer is a maxout.)
// The decoder needs its state at one position of the target to compute the next. The generator, by far the largest
// product, runs for all positions at once.
// Row t of the logits predicts token t + 1 of the target.
#pragma once

#include <optional>

#include "autograd/ops/cross_entropy.h"
#include "nn/layers/attentive_gru.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/recurrent.h"
#include "nn/models/translator_config.h"

namespace orrery::nn {

/// What the encoder hands to the decoder.
struct RecurrentMemory {
  Variable annotations;  ///< [B, S, 2 E]: each word in its context
  Variable first_state;  ///< [B, H], of the decoder
  Mask mask;             ///< the padding of the source
};

struct RecurrentTranslator : Module {
  RecurrentTranslatorConfig config;
  Embedding src_embed, tgt_embed;
  BidirectionalGru encoder;
  Linear bridge;
  AttentiveGru decoder;
  std::optional<Linear> output;
  Linear generator;
  Dropout dropout, output_dropout;

  /// Draws every weight from `rng`. Errors: whatever `config.validate()` rejects.
  RecurrentTranslator(const RecurrentTranslatorConfig& config, Rng& rng);

  /// Scores for every next token: source i32 [B, S] and target i32 [B, T] to logits [B, T, tgt_vocab_size]. If
  /// `weights` is given, it receives the attention weights [B, T, S].
  Variable operator()(const Tensor& source, const Tensor& target, Pass& pass, Tensor* weights = nullptr) const;
  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `target`. The logits are
  /// computed in chunks and never stored as a whole.
  Variable loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                const CrossEntropyOptions& options = {}) const;

  /// What the decoder needs of source i32 [B, S].
  RecurrentMemory encode(const Tensor& source, Pass& pass) const;
  /// What `generator` reads: [B, T, config.generator_inputs()].
  Variable hidden(const Tensor& target, const RecurrentMemory& memory, Pass& pass, Tensor* weights = nullptr) const;
  /// The same without dropout, for tokens that continue a sequence. On entry, `state` [B, H] is the decoder's state
  /// before them; on return, the state after them. The keys are `decoder.key` of the annotations.
  Variable next_hidden(const Tensor& target, const Variable& annotations, const Variable& keys, const Mask& mask,
                       Tensor& state) const;
  /// The mask of the padding. Without a pad_id it allows everything.
  Mask padding(const Tensor& ids) const;

  RecurrentTranslator clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(Visitor& v) override;

 private:
  // States, contexts and words side by side, and through `output` if there is one.
  Variable read(const Variable& states, const Variable& contexts, const Variable& words) const;
};

}  // namespace orrery::nn
