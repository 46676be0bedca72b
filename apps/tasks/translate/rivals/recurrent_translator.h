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
// Row t of the logits predicts token t + 1 of the target. In generation the decoder keeps one state for each row, and
// reads the annotations of the source again at each step.
#pragma once

#include <optional>
#include <string>

#include "apps/tasks/translate/rivals/attentive_gru.h"
#include "apps/tasks/translate/rivals/gru.h"
#include "apps/tasks/translate/rivals/states.h"
#include "autograd/ops/cross_entropy.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/models/fields.h"

namespace orrery::translate {

/// The defaults are the sizes of tutorial 3 of github.com/bentrevett/pytorch-seq2seq, which trains this model on
/// Multi30k. With its 7,853 and 5,893 words, it has 20,518,405 parameters.
struct RecurrentTranslatorConfig {
  i64 src_vocab_size = 0, tgt_vocab_size = 0;
  i64 d_embedding = 256;
  i64 d_encoder = 512;    ///< units of each direction of the encoder
  i64 d_decoder = 512;    ///< units of the decoder
  i64 d_attention = 512;  ///< size of a query and a key
  /// 0: the generator reads states, contexts and embeddings as they are. Otherwise a linear map and tanh bring them to
  /// this size first (Luong et al. 2015, equation 5), which makes the generator, the largest product, smaller.
  i64 d_output = 0;
  double dropout = 0.5;       ///< on the embeddings
  double output_dropout = 0;  ///< on what the generator reads
  /// The longest sentence that the model is meant for, its begin or end included. The layers could compute longer ones,
  /// but nothing was learned about those, so no translation is longer.
  i64 max_len = 256;
  i32 pad_id = 0;                 ///< trailing tokens of this id are padding; -1: there is none
  bool share_embeddings = false;  ///< one table for both languages; also the generator's if d_output is d_embedding

  /// What the generator reads.
  i64 generator_inputs() const { return d_output > 0 ? d_output : d_decoder + 2 * d_encoder + d_embedding; }
  bool shares_generator() const { return share_embeddings && generator_inputs() == d_embedding; }
  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  friend bool operator==(const RecurrentTranslatorConfig&, const RecurrentTranslatorConfig&) = default;
};

/// Calls field(about, value) for every field (nn/models/fields.h).
template <class F>
void for_each_field(RecurrentTranslatorConfig& config, F&& field) {
  field({"src_vocab_size", nn::Rule::positive}, config.src_vocab_size);
  field({"tgt_vocab_size", nn::Rule::positive}, config.tgt_vocab_size);
  field({"d_embedding", nn::Rule::positive, 12288, "Width of the embeddings"}, config.d_embedding);
  field({"d_encoder", nn::Rule::positive, 12288, "Recurrent: units of each direction of the encoder"},
        config.d_encoder);
  field({"d_decoder", nn::Rule::positive, 12288, "Recurrent: units of the decoder"}, config.d_decoder);
  field({"d_attention", nn::Rule::positive, 12288, "Recurrent: width of the keys"}, config.d_attention);
  field({"d_output", nn::Rule::any, 12288,
         "Recurrent: width of the layer before the logits; 0: no such layer, the logits come straight from state, "
         "context and word"},
        config.d_output);
  field({"dropout", nn::Rule::probability}, config.dropout);
  field({"output_dropout", nn::Rule::probability}, config.output_dropout);
  field({"max_len", nn::Rule::positive}, config.max_len);
  field({"pad_id"}, config.pad_id);
  field({"share_embeddings"}, config.share_embeddings);
}

/// Every field as JSON, for a file's metadata; and back, where absent fields keep their defaults.
/// Errors: text that is not a JSON object, unknown fields, values of a wrong type, and those of `validate`.
std::string to_json(const RecurrentTranslatorConfig& config);
RecurrentTranslatorConfig recurrent_translator_config(const std::string& json);

/// What the encoder hands to the decoder.
struct RecurrentMemory {
  Variable annotations;  ///< [B, S, 2 E]: each word in its context
  Variable first_state;  ///< [B, H], of the decoder
  Mask mask;             ///< the padding of the source
};

struct RecurrentTranslator : nn::Module {
  RecurrentTranslatorConfig config;
  nn::Embedding src_embed, tgt_embed;
  BidirectionalGru encoder;
  nn::Linear bridge;
  AttentiveGru decoder;
  std::optional<nn::Linear> output;
  nn::Linear generator;
  nn::Dropout dropout, output_dropout;

  /// Draws every weight from `rng`. Errors: whatever `config.validate()` rejects.
  RecurrentTranslator(const RecurrentTranslatorConfig& config, Rng& rng);

  /// Scores for every next token: source i32 [B, S] and target i32 [B, T] to logits [B, T, tgt_vocab_size].
  /// `pass.recorder` receives attention weights [B, 1, T, S].
  Variable operator()(const Tensor& source, const Tensor& target, nn::Pass& pass) const;
  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `target`. The logits are
  /// computed in chunks and never stored as a whole.
  Variable loss(const Tensor& source, const Tensor& target, const Tensor& labels, nn::Pass& pass,
                const CrossEntropyOptions& options = {}) const;

  /// What the decoder needs of source i32 [B, S].
  RecurrentMemory encode(const Tensor& source, nn::Pass& pass) const;
  /// What `generator` reads: [B, T, config.generator_inputs()].
  Variable hidden(const Tensor& target, const RecurrentMemory& memory, nn::Pass& pass) const;
  /// The same without dropout, for tokens that continue a sequence. On entry, `state` [B, H] is the decoder's state
  /// before them; on return, the state after them. The keys are `decoder.key` of the annotations.
  Variable next_hidden(const Tensor& target, const Variable& annotations, const Variable& keys, const Mask& mask,
                       Tensor& state) const;
  /// The mask of the padding. Without a pad_id it allows everything.
  Mask padding(const Tensor& ids) const;

  RecurrentTranslator clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(nn::Visitor& v) override;

 private:
  // States, contexts and words side by side, and through `output` if there is one.
  Variable read(const Variable& states, const Variable& contexts, const Variable& words) const;
};

/// The state of a RecurrentTranslator's decoder.
struct RecurrentState {
  SourceRows source;  ///< keys [R, S, A] and annotations [R, S, 2 E]
  Tensor state;       ///< s [R, H]
};
/// The state before the first token.
RecurrentState recurrent_state(const RecurrentTranslator& model, const Tensor& source);
/// Logits [R, n, K] of the tokens that may follow each of `tokens`. Errors: a call that would be recorded; another
/// number of rows than the state has.
Tensor next_logits(const RecurrentTranslator& model, const Tensor& tokens, RecurrentState& state);
/// Row i becomes what row chosen[i] was. Errors: no such row.
void choose_rows(RecurrentState& state, std::span<const i64> chosen);

/// Its decoder for beam search, after reading `source`, as for a Transformer (nn/generate/beam_search.h). It refers to
/// `model`. Error: max_len beyond the model's.
std::unique_ptr<nn::StepwiseDecoder> stepwise_decoder(const RecurrentTranslator& model, const Tensor& source,
                                                      i64 max_len);

}  // namespace orrery::translate
