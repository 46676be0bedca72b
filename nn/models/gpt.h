// Chapter 7. Gpt: a decoder without an encoder, from tokens to scores for the next token at every position at once.
//
// Without an encoder, the decoder needs no cross-attention. What remains is an encoder with a causal mask.
// Radford et al. 2019 ("GPT-2"), section 2.3: "Layer normalization was moved to the input of each sub-block, [...] and
// an additional layer normalization was added after the final self-attention block. A modified initialization which
// accounts for the accumulation on the residual path with model depth is used. We scale the weights of residual layers
// at initialization by a factor of 1/sqrt(N) where N is the number of residual layers."
//   x = dropout(token_embedding[ids] + position_embedding[0, 1, ...])
//   x = x + dropout(attention(norm(x)));   x = x + dropout(feed_forward(norm(x)))      in each layer
//   logits = norm(x) token_embedding^T                                                 the tied head
// Shapes: ids i32 [B, T], T <= max_len, x [B, T, d_model], logits [B, T, vocab_size]. Row t of the logits predicts
// token t + 1. Parameters have the names of GPT-2's published files (wte, wpe, h.0.ln_1, ...). They are also stored as
// in those files: the weights of layers as [in, out] (nn/files/gpt_files.h).
// Read next: nn/models/gpt.cpp
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "nn/layers/embedding.h"
#include "nn/models/encoder.h"
#include "nn/models/gpt_config.h"

namespace orrery::nn {

struct GptLayer : Module {
  LayerNorm norm1;
  Part<Attention> self_attn;  // a MultiHeadAttention, or an attention of your own
  LayerNorm norm2;
  FeedForward feed_forward;
  Dropout dropout;

  GptLayer(const LayerOptions& options, Rng& rng);
  /// x is [B, T, d_model]. If `weights` is given, it receives the attention weights [B, h, T, T].
  Variable operator()(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights = nullptr) const;
  /// The same with any function of the sub-layer's input as the attention. Generation passes one that reads keys and
  /// values from a cache (nn/generate/decoder_state.h).
  template <class SelfAttention>
  Variable with_attention(const Variable& x, Pass& pass, const SelfAttention& self_attention) const {
    constexpr bool norm_first = true;
    const Variable attended = with_residual(x, norm1, norm_first, dropout, pass, self_attention);
    return with_residual(attended, norm2, norm_first, dropout, pass,
                         [&](const Variable& in) { return feed_forward(in, pass); });
  }
  void visit(Visitor& v) override;
};

struct Gpt : Module {
  GptConfig config;
  Embedding token_embedding, position_embedding;
  std::vector<GptLayer> layers;
  LayerNorm final_norm;
  Linear lm_head;  // to vocab_size; in a tied model its weight is not defined, and the token embedding's is used
  Dropout dropout;

  /// Draws every weight from N(0, 0.02^2), except those that write to the residual connection. They are drawn from
  /// N(0, 0.02^2 / (2 num_layers)). Biases are 0. Errors: whatever `config.validate()` rejects.
  Gpt(const GptConfig& config, Rng& rng);

  /// Scores for every next token: ids i32 [B, T] to logits [B, T, vocab_size]. If `weights` is given, the attention
  /// weights of each layer before dropout, [B, h, T, T], are appended to it. No position sees later ones, so trailing
  /// padding needs no mask. If its embeddings may hold NaN, infinity or huge numbers, `padding` says where it is, and
  /// they count as 0 (nn/layers/padding.h).
  Variable operator()(const Tensor& ids, Pass& pass, std::vector<Tensor>* weights = nullptr,
                      const Mask& padding = {}) const;

  /// The cross_entropy of the logits with `labels` i32 [B, T], the tokens that follow those of `ids`. The logits are
  /// computed in chunks and never stored as a whole. What follows the last label that counts is padding.
  Variable loss(const Tensor& ids, const Tensor& labels, Pass& pass, const CrossEntropyOptions& options = {}) const;

  /// The two halves of the model. `hidden` is the output of the last norm, [B, T, d_model], where no position depends
  /// on later ones. `head` computes the logits of some of these positions, [..., d_model].
  Variable hidden(const Tensor& ids, Pass& pass, std::vector<Tensor>* weights = nullptr,
                  const Mask& padding = {}) const;
  Variable head(const Variable& hidden) const;
  /// The input of the first layer: dropout(tokens + positions), [B, T, d_model]. Error: T beyond max_len.
  Variable embed(const Tensor& ids, Pass& pass) const;

  Gpt clone();  ///< a copy that shares nothing with this model, built from `config`
  void visit(Visitor& v) override;

 private:
  const Variable& classes() const { return lm_head.weight.defined() ? lm_head.weight : token_embedding.weight; }
};

}  // namespace orrery::nn
