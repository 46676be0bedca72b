// Chapter 7. Decoder: a stack of layers that attend to the earlier target tokens, then to the encoder's output.
//
// Paper, section 3.1: "In addition to the two sub-layers in each encoder layer, the decoder inserts a third sub-layer,
// which performs multi-head attention over the output of the encoder stack. [...] We also modify the self-attention
// sub-layer in the decoder stack to prevent positions from attending to subsequent positions."
// Shapes: x, y [B, T, d_model], memory (the encoder's output) [B, S, d_model]. The target mask must include
// Mask::causal(). Padding, of the target and of the memory, may hold anything, as in an encoder.
// Read next: nn/models/transformer.h
#pragma once

#include "nn/models/encoder.h"

namespace orrery::nn {

struct DecoderLayer : Module {
  Part<Attention> self_attn, multihead_attn;  // each a MultiHeadAttention, or an attention of your own
  FeedForward feed_forward;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout;
  bool norm_first;

  DecoderLayer(const LayerOptions& options, Rng& rng);
  using Module::parameter_count;
  static double parameter_count(const LayerOptions& options);  ///< counted without building a layer
  /// x is [B, T, d_model], memory [B, S, d_model]. The weights, if asked for, are [B, h, T, T] and [B, h, T, S].
  Variable operator()(const Variable& x, const Variable& memory, const Mask& target_mask, const Mask& memory_mask,
                      Pass& pass, Tensor* self_weights = nullptr, Tensor* cross_weights = nullptr) const;
  /// The same with any two functions of a sub-layer's input as the attentions. Generation passes functions that read
  /// keys and values from caches (nn/generate/decoder_state.h).
  template <class SelfAttention, class CrossAttention>
  Variable with_attentions(const Variable& x, Pass& pass, const SelfAttention& self_attention,
                           const CrossAttention& cross_attention) const {
    const Variable after_self = with_residual(x, norm1, norm_first, dropout, pass, self_attention);
    const Variable after_cross = with_residual(after_self, norm2, norm_first, dropout, pass, cross_attention);
    return with_residual(after_cross, norm3, norm_first, dropout, pass,
                         [&](const Variable& in) { return feed_forward(in, pass); });
  }
  void visit(Visitor& v) override;
};

struct Decoder : Module {
  std::vector<DecoderLayer> layers;
  std::optional<LayerNorm> norm;  // the final norm

  Decoder(i64 num_layers, bool final_norm, const LayerOptions& options, Rng& rng);
  /// Shapes as for one layer. If the lists of weights are given, one tensor for each layer is appended to them.
  Variable operator()(Variable x, const Variable& memory, const Mask& target_mask, const Mask& memory_mask, Pass& pass,
                      std::vector<Tensor>* self_weights = nullptr, std::vector<Tensor>* cross_weights = nullptr) const;
  void visit(Visitor& v) override;
};

}  // namespace orrery::nn
