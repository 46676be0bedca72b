// Chapter 7. Encoder: a stack of layers, each of which is self-attention followed by a feed-forward network.
//
// Paper, section 3.1: "The encoder is composed of a stack of N = 6 identical layers. Each layer has two sub-layers. The
// first is a multi-head self-attention mechanism, and the second is a simple, position-wise fully connected
// feed-forward network. We employ a residual connection around each of the two sub-layers, followed by layer
// normalization. That is, the output of each sub-layer is LayerNorm(x + Sublayer(x))".
// With norm_first, the output of each sub-layer is x + Sublayer(LayerNorm(x)) instead. Deep stacks then train without
// warm-up, but need a final norm, since nothing else normalises their output. Dropout is applied to the output of each
// sub-layer (section 5.4).
// Padding may hold anything: no position sees it, and what could spread from there counts as 0 (nn/layers/padding.h).
// Shapes: x, y [B, S, d_model].
// Read next: nn/models/decoder.h
#pragma once

#include "autograd/ops/fused/linear/residual.h"
#include "core/mask.h"
#include "nn/models/layer_options.h"

namespace orrery::nn {

/// A sub-layer with its residual connection: LayerNorm(x + dropout(Sublayer(x))), or with norm_first
/// x + dropout(Sublayer(LayerNorm(x))).
template <class Sublayer>
Variable with_residual(const Variable& x, const LayerNorm& norm, bool norm_first, const Dropout& dropout, Pass& pass,
                       const Sublayer& sublayer) {
  const Variable f = sublayer(norm_first ? norm(x) : x);
  const double p = dropout.active(pass);
  return norm_first ? residual(x, f, p, pass.draw_for(p)) : norm.normalized_sum(x, f, p, pass.draw_for(p));
}

struct EncoderLayer : Module {
  Part<Attention> self_attn;  // a MultiHeadAttention, or an attention of your own
  FeedForward feed_forward;
  LayerNorm norm1, norm2;
  Dropout dropout;
  bool norm_first;

  EncoderLayer(const LayerOptions& options, Rng& rng);
  using Module::parameter_count;
  static double parameter_count(const LayerOptions& options);  ///< counted without building a layer
  /// x is [B, S, d_model]. If `weights` is given, it receives the attention weights [B, h, S, S].
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
