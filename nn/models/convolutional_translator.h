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
// All positions of the target are computed at once in training, as in a Transformer.
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "nn/layers/convolution.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/linear.h"
#include "nn/models/translator_config.h"
#include "nn/positions/positional_encoding.h"

namespace orrery::nn {

/// What the encoder hands to the decoder, [B, S, d_embedding] each.
struct ConvolutionalMemory {
  Variable keys, values;
  Mask mask;  ///< the padding of the source
};

/// glu(convolution(dropout(h))) [+] h, for h [B, S, d_hidden].
struct ConvolutionalEncoderLayer : Module {
  Convolution convolution;
  Dropout dropout;

  ConvolutionalEncoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng);
  Variable operator()(const Variable& h, const Mask& mask, Pass& pass) const;
  void visit(Visitor& v) override { v("convolution", convolution); }
};

/// The same, causal, with attention before the sum.
struct ConvolutionalDecoderLayer : Module {
  Convolution convolution;
  Linear query;     // from d_hidden to d_embedding
  Linear attended;  // from d_embedding to d_hidden
  Dropout dropout;

  ConvolutionalDecoderLayer(const ConvolutionalTranslatorConfig& config, Rng& rng);
  /// h [B, T, d_hidden] and the embedded target g [B, T, d_embedding] to [B, T, d_hidden]. If `weights` is given, it
  /// receives the attention weights [B, T, S].
  Variable operator()(const Variable& h, const Variable& g, const ConvolutionalMemory& memory, Pass& pass,
                      Tensor* weights = nullptr) const;
  /// The same for the newest T positions alone. `inputs` [B, width - 1 + T, d_hidden] holds the inputs at the width - 1
  /// positions before them, then their own.
  Variable newest(const Variable& inputs, const Variable& g, const ConvolutionalMemory& memory) const;
  void visit(Visitor& v) override;

 private:
  Variable attend(const Variable& d, const Variable& h, const Variable& g, const ConvolutionalMemory& memory,
                  Tensor* weights) const;
};

struct ConvolutionalTranslator : Module {
  ConvolutionalTranslatorConfig config;
  Embedding src_embed, tgt_embed;
  PositionalEncoding src_positions, tgt_positions;
  Linear encoder_in, encoder_out, decoder_in, decoder_out;  // between d_embedding and d_hidden
  std::vector<ConvolutionalEncoderLayer> encoder;
  std::vector<ConvolutionalDecoderLayer> decoder;
  Linear generator;
  Dropout dropout;

  /// Draws every weight from `rng`, as the paper says in section 3.6: embeddings from N(0, 0.1^2), matrices of n inputs
  /// from N(0, 1/n), those before a glu from N(0, 4 (1 - dropout) / n), biases 0. Errors: whatever `config.validate()`
  /// rejects.
  ConvolutionalTranslator(const ConvolutionalTranslatorConfig& config, Rng& rng);

  /// Scores for every next token: source i32 [B, S] and target i32 [B, T] to logits [B, T, tgt_vocab_size]. If
  /// `weights` is given, it receives the attention weights [B, T, S] of each layer.
  Variable operator()(const Tensor& source, const Tensor& target, Pass& pass,
                      std::vector<Tensor>* weights = nullptr) const;
  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `target`. The logits are
  /// computed in chunks and never stored as a whole.
  Variable loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                const CrossEntropyOptions& options = {}) const;

  /// What the decoder needs of source i32 [B, S].
  ConvolutionalMemory encode(const Tensor& source, Pass& pass) const;
  /// Words plus positions from `first_position` on, dropped out: [B, T, d_embedding].
  Variable embed(const Tensor& ids, const Embedding& words, const PositionalEncoding& encoding, i64 first_position,
                 Pass& pass) const;
  /// What `generator` reads: [B, T, d_embedding].
  Variable hidden(const Tensor& target, const ConvolutionalMemory& memory, Pass& pass,
                  std::vector<Tensor>* weights = nullptr) const;
  /// The mask of the padding. Without a pad_id it allows everything.
  Mask padding(const Tensor& ids) const;

  ConvolutionalTranslator clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(Visitor& v) override;
};

}  // namespace orrery::nn
