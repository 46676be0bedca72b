// Chapter 7. ConvolutionalTranslator: convolutions read the source and write the target, with attention in every layer.
//
// Gehring et al. 2017 ("Convolutional Sequence to Sequence Learning"), section 3.1: "We also equip our model with a
// sense of order by embedding the absolute position of input elements". Section 3.5: "We multiply the sum of the input
// and output of a residual block by sqrt(0.5) to halve the variance of the sum." Here [+] is such a sum:
//   encoder   e = src_embed + src_positions        h = in(e)        h <- glu(convolution(h)) [+] h     in each layer
//             keys k = out(h)        values v = k [+] e
//   decoder   g = tgt_embed + tgt_positions        h = in(g)
//             d = glu(causal convolution(h))       c = softmax((query(d) [+] g) k^T) v
//             h <- (d [+] attended(c)) [+] h                                                     in each layer
//             logits = generator(out(h))
// This is the form of tutorial 5 of github.com/bentrevett/pytorch-seq2seq with two differences. As in the paper, each
// layer's attention has linear maps of its own. And padding counts as 0 everywhere, so that a row does not depend on
// the rows beside it. The paper's weight normalisation, its scaling of c by the length of the source, and the scaling
// of the encoder's gradients are left out.
// All positions of the target are computed at once in training, as in a Transformer. In generation the decoder keeps,
// for each layer, the inputs of the last width - 1 positions.
#pragma once

#include <string>
#include <vector>

#include "apps/tasks/translate/rivals/states.h"
#include "autograd/ops/cross_entropy.h"
#include "nn/layers/convolution.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/models/fields.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::translate {

/// The defaults are the sizes of tutorial 5 of github.com/bentrevett/pytorch-seq2seq.
struct ConvolutionalTranslatorConfig {
  i64 src_vocab_size = 0, tgt_vocab_size = 0;
  i64 d_embedding = 256, d_hidden = 512;
  i64 num_encoder_layers = 10, num_decoder_layers = 10;
  i64 width = 3;                  ///< positions that each output of a convolution sees; odd
  double dropout = 0.25;          ///< on embeddings, on each layer's input, and on what the generator reads
  i64 max_len = 256;              ///< positions, which are learned; a longer sequence is an error
  i32 pad_id = 0;                 ///< trailing tokens of this id are padding; -1: there is none
  bool share_embeddings = false;  ///< one table for both languages, also as the generator's matrix

  static ConvolutionalTranslatorConfig of_json(const std::string& json);
  /// Errors, naming the field: a value is out of range, or two values do not fit together.
  void validate() const;
  /// The number of the model's parameters, counted without building it; 2^53 if there are more.
  i64 parameter_count() const;
  friend bool operator==(const ConvolutionalTranslatorConfig&, const ConvolutionalTranslatorConfig&) = default;
};

/// Calls field(about, value) for every field (nn/models/fields.h).
template <class F> void for_each_field(ConvolutionalTranslatorConfig& config, F&& field) {
  field({"src_vocab_size", nn::Rule::positive}, config.src_vocab_size);
  field({"tgt_vocab_size", nn::Rule::positive}, config.tgt_vocab_size);
  field({"d_embedding", nn::Rule::positive}, config.d_embedding);
  field({"d_hidden", nn::Rule::positive, 12288, "Convolutional: width of the layers"}, config.d_hidden);
  field({"num_encoder_layers", nn::Rule::positive}, config.num_encoder_layers);
  field({"num_decoder_layers", nn::Rule::positive}, config.num_decoder_layers);
  field({"width", nn::Rule::any, 99, "Convolutional: positions that each output sees, an odd number"}, config.width);
  field({"dropout", nn::Rule::probability}, config.dropout);
  field({"max_len", nn::Rule::positive}, config.max_len);
  field({"pad_id"}, config.pad_id);
  field({"share_embeddings"}, config.share_embeddings);
}

std::string to_json(const ConvolutionalTranslatorConfig& config);

/// What the encoder hands to the decoder, [B, S, d_embedding] each.
struct ConvolutionalMemory {
  Variable keys, values;
  Mask mask;  ///< the padding of the source
};

/// glu(convolution(dropout(h))) [+] h, for h [B, S, d_hidden].
struct ConvolutionalEncoderLayer : nn::Module {
  nn::Convolution convolution;
  nn::Dropout dropout;

  ConvolutionalEncoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng);
  Variable operator()(const Variable& h, const Mask& mask, nn::Pass& pass) const;
  void visit(nn::Visitor& v) override { v("convolution", convolution); }
};

/// The same, causal, with attention before the sum.
struct ConvolutionalDecoderLayer : nn::Module {
  nn::Convolution convolution;
  nn::Linear query;     // from d_hidden to d_embedding
  nn::Linear attended;  // from d_embedding to d_hidden
  nn::Dropout dropout;

  ConvolutionalDecoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng);
  /// h [B, T, d_hidden] and the embedded target g [B, T, d_embedding] to [B, T, d_hidden].
  /// `pass.recorder` receives attention weights [B, 1, T, S].
  Variable operator()(const Variable& h, const Variable& g, const ConvolutionalMemory& memory, nn::Pass& pass) const;
  /// The same for the newest T positions alone. `inputs` [B, width - 1 + T, d_hidden] holds the inputs at the width - 1
  /// positions before them, then their own.
  Variable newest(const Variable& inputs, const Variable& g, const ConvolutionalMemory& memory, nn::Pass& pass) const;
  void visit(nn::Visitor& v) override;

 private:
  Variable attend(const Variable& d, const Variable& h, const Variable& g, const ConvolutionalMemory& memory,
                  nn::Pass& pass) const;
};

struct ConvolutionalTranslator : nn::Module {
  ConvolutionalTranslatorConfig config;
  nn::Embedding src_embed, tgt_embed;
  nn::PositionalEncoding src_positions, tgt_positions;
  nn::Linear encoder_in, encoder_out, decoder_in, decoder_out;  // between d_embedding and d_hidden
  std::vector<ConvolutionalEncoderLayer> encoder;
  std::vector<ConvolutionalDecoderLayer> decoder;
  nn::Linear generator;
  nn::Dropout dropout;

  /// Draws every weight from `rng`, as the paper says in section 3.6: embeddings from N(0, 0.1^2), matrices of n inputs
  /// from N(0, 1/n), those before a glu from N(0, 4 (1 - dropout) / n), biases 0. Errors: whatever `config.validate()`
  /// rejects.
  ConvolutionalTranslator(const ConvolutionalTranslatorConfig& config, Rng& rng);

  /// Scores for every next token: source i32 [B, S] and target i32 [B, T] to logits [B, T, tgt_vocab_size].
  Variable operator()(const Tensor& source, const Tensor& target, nn::Pass& pass) const;
  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `target`. The logits are
  /// computed in chunks and never stored as a whole.
  Variable loss(const Tensor& source, const Tensor& target, const Tensor& labels, nn::Pass& pass,
                const CrossEntropyOptions& options = {}) const;

  /// What the decoder needs of source i32 [B, S].
  ConvolutionalMemory encode(const Tensor& source, nn::Pass& pass) const;
  /// Words plus positions from `first_position` on, dropped out: [B, T, d_embedding].
  Variable embed(const Tensor& ids, const nn::Embedding& words, const nn::PositionalEncoding& encoding,
                 i64 first_position, nn::Pass& pass) const;
  /// What `generator` reads: [B, T, d_embedding].
  Variable hidden(const Tensor& target, const ConvolutionalMemory& memory, nn::Pass& pass) const;
  /// The mask of the padding. Without a pad_id it allows everything.
  Mask padding(const Tensor& ids) const;

  ConvolutionalTranslator clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(nn::Visitor& v) override;
};

/// The state of a ConvolutionalTranslator's decoder.
struct ConvolutionalState {
  SourceRows source;           ///< keys and values [R, S, d_embedding]
  std::vector<Tensor> inputs;  ///< of each layer: its inputs at the last width - 1 positions, [R, width - 1, d_hidden]
  i64 length = 0;              ///< positions read so far
};
// As for the recurrent model. Errors of `next_logits` also: more positions than the model has.
ConvolutionalState convolutional_state(const ConvolutionalTranslator& model, const Tensor& source);
Tensor next_logits(const ConvolutionalTranslator& model, const Tensor& tokens, ConvolutionalState& state);
void choose_rows(ConvolutionalState& state, std::span<const i64> chosen);

// As for the recurrent model.
std::unique_ptr<nn::StepwiseDecoder> stepwise_decoder(const ConvolutionalTranslator& model, const Tensor& source,
                                                      i64 max_len);

}  // namespace orrery::translate
