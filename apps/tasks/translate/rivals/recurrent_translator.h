// Chapter 7. RecurrentTranslator: a bidirectional GRU reads the source, a GRU with attention writes the target.
//
// Paper, section 1: "Recurrent models typically factor computation along the symbol positions of the input and output
// sequences. Aligning the positions to steps in computation time, they generate a sequence of hidden states h_t, as a
// function of the previous hidden state h_{t-1} and the input for position t." In a gated recurrent unit, two gates
// decide what of the state stays. Cho et al. 2014, section 2.3: "when the reset gate is close to 0, the hidden state is
// forced to ignore the previous hidden state", and "the update gate controls how much information from the previous
// hidden state will carry over to the current hidden state".
//   r_t = sigmoid(W_ir x_t + b_ir + W_hr h_{t-1} + b_hr)      reset gate
//   z_t = sigmoid(W_iz x_t + b_iz + W_hz h_{t-1} + b_hz)      update gate
//   n_t = tanh(W_in x_t + b_in + r_t (W_hn h_{t-1} + b_hn))
//   h_t = (1 - z_t) n_t + z_t h_{t-1}
// Bahdanau, Cho, Bengio 2015 ("Neural Machine Translation by Jointly Learning to Align and Translate"), section 3: "The
// new architecture consists of a bidirectional RNN as an encoder [...] and a decoder that emulates searching through a
// source sentence during decoding a translation". In the form of tutorials 3 and 4 of
// github.com/bentrevett/pytorch-seq2seq:
//   source [B, S] -> src_embed -> encoder: memory m [B, S, 2 E], and s_0 = tanh(bridge([last forward; last backward]))
//   target [B, T] -> tgt_embed: y_t -> decoder: c_t = what s_{t-1} attends to, s_t = gru([y_t; c_t], s_{t-1})
//   logits_t = generator([s_t; c_t; y_t])       or, with d_output, generator(tanh(output([s_t; c_t; y_t])))
// E is d_encoder, the units of one direction; a state s_t has H = d_decoder units.
// (The paper's bridge reads the first backward state alone, and its last layer is a maxout.)
// A state needs the one before it: no training computes all positions at once, as a Transformer's does. Every position
// is some operations of its own. The generator, by far the largest product, runs for all positions at once.
// Row t of the logits predicts token t + 1 of the target. In generation the decoder keeps one state for each row, and
// reads the annotations of the source again at each step.
#pragma once

#include <optional>
#include <string>

#include "apps/tasks/translate/rivals/states.h"
#include "autograd/ops/cross_entropy.h"
#include "core/mask.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/models/fields.h"

namespace orrery::translate {

/// The unit above. Names, order and formulas are those of torch.nn.GRU with one layer. In a row's padding the state
/// stays as it is, so h_T is the state after the last real position, whatever the padding holds.
struct Gru : nn::Module {
  Variable weight_ih, weight_hh;  // [3 H, in], [3 H, H]: gates r, z, n, one above the other
  Variable bias_ih, bias_hh;      // [3 H]
  bool reverse;                   // from the last position to the first

  /// All parameters start from U(-1/sqrt(H), 1/sqrt(H)), as in PyTorch.
  Gru(i64 in, i64 H, Rng& rng, bool reverse = false);
  /// x [B, T, in] to the states at all positions, [B, T, H]. Only the padding of `mask` is used. The first state h0
  /// [B, H] is 0 if undefined.
  Variable operator()(const Variable& x, const Mask& mask = {}, const Variable& h0 = {}) const;
  /// The last state that `states` [B, T, H] came to: [B, H]. Errors: no position.
  Variable last(const Variable& states) const;
  void visit(nn::Visitor& v) override;
};

/// Two GRUs, one for each direction. Their parameters have the names of one bidirectional torch.nn.GRU. Bahdanau et al.
/// 2015, section 3.2: "we would like the annotation of each word to summarize not only the preceding words, but also
/// the following words."
struct BidirectionalGru : nn::Module {
  Gru forward, backward;

  BidirectionalGru(i64 in, i64 H, Rng& rng) : forward(in, H, rng), backward(in, H, rng, true) {}

  /// What both directions return.
  struct Result {
    Variable states;  ///< [B, T, 2 H]: at each position, forward beside backward
    Variable last;    ///< [B, 2 H]: forward after the row's last position, backward after its first
  };
  Result operator()(const Variable& x, const Mask& mask = {}) const;
  void visit(nn::Visitor& v) override {
    v.inlined(forward);
    v.inlined(backward);
  }
};

/// Sizes of an AttentiveGru.
struct AttentiveGruSizes {
  i64 in;  ///< of an input x_t
  i64 H;   ///< of a state s_t
  i64 M;   ///< of a row of the memory
  i64 A;   ///< of a query and a key
};
/// What it returns: states [B, T, H], and contexts [B, T, M], what attention read at each position.
struct AttentiveGruResult {
  Variable states, contexts;
};

/// A unit that looks at the source before each step, the first attention in translation. Bahdanau et al. 2015, section
/// 3.1: "The decoder decides parts of the source sentence to pay attention to. By letting the decoder have an attention
/// mechanism, we relieve the encoder from the burden of having to encode all information in the source sentence into a
/// fixed-length vector."
///   e_tj = v . tanh(W_q s_{t-1} + W_k m_j + b_k)          additive attention: a small network scores each pair
///   c_t = sum_j softmax(e_t)_j m_j
///   s_t = gru([x_t ; c_t], s_{t-1})                       the gates of x_t and c_t are two linear maps, added up
/// The Transformer keeps the weighted sum and drops the recurrence. Its scores are dot products. Paper, section 3.2.1:
/// "While the two are similar in theoretical complexity, dot-product attention is much faster and more space-efficient
/// in practice, since it can be implemented using highly optimized matrix multiplication code."
struct AttentiveGru : nn::Module {
  nn::Linear input;      // from in to 3 H gates
  nn::Linear context;    // from M to 3 H gates, without bias
  nn::Linear recurrent;  // from H to 3 H gates
  nn::Linear query;      // from H to A, without bias
  nn::Linear key;        // from M to A
  Variable v;            // [A]

  AttentiveGru(const AttentiveGruSizes& sizes, Rng& rng);

  /// x [B, T, in], s0 [B, H] and memory [B, S, M] to states and contexts at all positions. Only the padding of `mask`
  /// is used: it is that of the memory. If `recorder` is given, it receives the attention weights [B, 1, T, S].
  AttentiveGruResult operator()(const Variable& x, const Variable& s0, const Variable& memory, const Mask& mask,
                                nn::AttentionRecorder* recorder = nullptr) const;
  /// The same with keys [B, S, A] that `key` has computed before, for calls that share a memory.
  AttentiveGruResult operator()(const Variable& x, const Variable& s0, const Variable& memory, const Variable& keys,
                                const Mask& mask, nn::AttentionRecorder* recorder = nullptr) const;
  void visit(nn::Visitor& v) override;
};

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
  static RecurrentTranslatorConfig of_json(const std::string& json);
  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  friend bool operator==(const RecurrentTranslatorConfig&, const RecurrentTranslatorConfig&) = default;
};

/// Calls field(about, value) for every field (nn/models/fields.h).
template <class F> void for_each_field(RecurrentTranslatorConfig& config, F&& field) {
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

std::string to_json(const RecurrentTranslatorConfig& config);

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
