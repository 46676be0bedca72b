// Chapter 7. Encoder: a stack of layers, each of which is self-attention followed by a feed-forward network.
//
// Paper, section 3.1: "The encoder is composed of a stack of N = 6 identical layers. Each layer has two sub-layers. The
// first is a multi-head self-attention mechanism, and the second is a simple, position-wise fully connected
// feed-forward network. We employ a residual connection around each of the two sub-layers, followed by layer
// normalization. That is, the output of each sub-layer is LayerNorm(x + Sublayer(x))".
// With norm_first, the output of each sub-layer is x + Sublayer(LayerNorm(x)) instead; deep stacks then train without
// warm-up. Such a stack needs a final norm, since nothing else normalises its output. Dropout is applied to the output
// of each sub-layer (section 5.4).
// Shapes: x, y [B, S, d_model].
// Read next: nn/models/decoder.h
#pragma once

#include "core/mask.h"
#include "nn/attention/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/layer_norm.h"

namespace orrery::nn {

/// What layers of an encoder or a decoder are built from.
struct LayerOptions {
  i64 d_model = 512, num_heads = 8, d_ff = 2048;
  i64 d_k = 0, d_v = 0;                                  ///< 0 means d_model / num_heads
  double dropout = 0;                                    ///< on each sub-layer's output
  double attention_dropout = 0, activation_dropout = 0;  ///< on attention weights; inside the feed-forward network
  bool norm_first = false;                               ///< normalise each sub-layer's input instead of the sum
  bool bias = true;
  Activation activation = Activation::relu;
  double layer_norm_eps = 1e-5;
  LayerNormForm layer_norm_form = LayerNormForm::root_of_variance_plus_eps;
  Init init = Init::xavier;

  LayerNormOptions norm() const { return {.eps = layer_norm_eps, .bias = bias, .form = layer_norm_form}; }
  AttentionOptions attention() const {
    return {.d_k = d_k, .d_v = d_v, .dropout = attention_dropout, .bias = bias, .init = init};
  }
  FeedForwardOptions feed_forward() const {
    return {.dropout = activation_dropout, .activation = activation, .bias = bias, .init = init};
  }
};

/// A sub-layer with its residual connection: LayerNorm(x + dropout(Sublayer(x))), or with norm_first
/// x + dropout(Sublayer(LayerNorm(x))).
template <class Sublayer>
Variable connected(const Variable& x, const LayerNorm& norm, bool norm_first, const Dropout& dropout, Pass& pass,
                   const Sublayer& sublayer) {
  const Variable f = sublayer(norm_first ? norm(x) : x);
  const double p = dropout.active(pass);
  return norm_first ? residual(x, f, p, pass.draw_for(p)) : norm.of_sum(x, f, p, pass.draw_for(p));
}

struct EncoderLayer : Module {
  MultiHeadAttention self_attn;
  FeedForward feed_forward;
  LayerNorm norm1, norm2;
  Dropout dropout;
  bool norm_first;

  EncoderLayer(const LayerOptions& options, Rng& rng);
  /// x [B, S, d_model]; `weights`, if given, becomes [B, h, S, S].
  Variable operator()(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights = nullptr) const;
  void visit(Visitor& v) override;
};

struct Encoder : Module {
  std::vector<EncoderLayer> layers;
  std::optional<LayerNorm> norm;  // the final norm

  Encoder(i64 num_layers, bool final_norm, const LayerOptions& options, Rng& rng);
  /// x is [B, S, d_model]. If `weights` is given, the attention weights [B, h, S, S] of each layer are appended to it.
  Variable operator()(Variable x, const Mask& mask, Pass& pass, std::vector<Tensor>* weights = nullptr) const;
  void visit(Visitor& v) override;
};

}  // namespace orrery::nn
