// Chapter 7. The stacks of the models: layers of encoder and decoder, and their options.
//
// Paper, section 3.1: "The encoder is composed of a stack of N = 6 identical layers. Each layer has two sub-layers. The
// first is a multi-head self-attention mechanism, and the second is a simple, position-wise fully connected
// feed-forward network. We employ a residual connection around each of the two sub-layers, followed by layer
// normalization. That is, the output of each sub-layer is LayerNorm(x + Sublayer(x))". "In addition to the two
// sub-layers in each encoder layer, the decoder inserts a third sub-layer, which performs multi-head attention over the
// output of the encoder stack. [...] We also modify the self-attention sub-layer in the decoder stack to prevent
// positions from attending to subsequent positions."
// With norm_first, the output of each sub-layer is x + Sublayer(LayerNorm(x)) instead. Deep stacks then train without
// warm-up, but need a final norm, since nothing else normalises their output. Dropout is applied to the output of each
// sub-layer (section 5.4).
// Padding may hold anything: no position sees it, and what could spread from there counts as 0 (nn/layers/padding.h).
// Shapes: source and memory (the encoder's output) [B, S, d_model], target [B, T, d_model].
// Read next: nn/models/transformer.h
#pragma once

#include <optional>

#include "autograd/ops/fused/linear/linear_cross_entropy.h"
#include "autograd/ops/fused/linear/residual.h"
#include "core/mask.h"
#include "nn/attention/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/layer_norm.h"
#include "nn/models/fields.h"

namespace orrery::nn {

/// Sizes and options of the layers of an encoder, a decoder or a GPT. A `std::optional` field without a value gets the
/// model's own default: ReLU in the paper's layers, GELU in a GPT's.
struct LayerOptions {
  i64 d_model = 512, num_heads = 8, d_ff = 2048;
  i64 d_k = 0, d_v = 0;  ///< 0 means d_model / num_heads
  double dropout = 0.1;  ///< on each sub-layer's output; in a model, also on embeddings plus positions
  /// On attention weights, and inside the feed-forward network. Not given: `dropout`, as in PyTorch (the paper has
  /// none); a GPT has none inside the feed-forward network.
  std::optional<double> attention_dropout{}, activation_dropout{};
  bool norm_first = false;                 ///< normalise each sub-layer's input instead of the sum
  bool bias = true;                        ///< of linear maps and norms
  std::optional<Activation> activation{};  ///< not given: ReLU; GELU with tanh in a GPT
  double layer_norm_eps = 1e-5;
  LayerNormForm layer_norm_form = LayerNormForm::root_of_variance_plus_eps;
  Init init = Init::xavier;

  i64 head_size() const { return d_k > 0 ? d_k : d_model / num_heads; }  ///< of queries and keys

  // The options of each part. Fields without a value get the defaults of the paper's model.
  LayerNormOptions norm() const { return {.eps = layer_norm_eps, .bias = bias, .form = layer_norm_form}; }
  LinearOptions linear() const { return {.bias = bias, .init = init}; }
  AttentionOptions attention() const {
    return {.d_k = d_k, .d_v = d_v, .dropout = attention_dropout.value_or(dropout), .bias = bias, .init = init};
  }
  FeedForwardOptions feed_forward() const {
    return {.dropout = activation_dropout.value_or(dropout),
            .activation = activation.value_or(Activation::relu),
            .bias = bias,
            .init = init};
  }
  /// Errors of `operation`, naming the field: a value is out of range, or two values do not fit together.
  void validate(std::string_view operation) const;
  friend bool operator==(const LayerOptions&, const LayerOptions&) = default;
};

/// Calls field(about, value) for every field (nn/models/fields.h).
template <class F> void for_each_field(LayerOptions& options, F&& field) {
  field({"d_model", Rule::positive, 12288, "Width of the model"}, options.d_model);
  field({"num_heads", Rule::positive, 96, "Attention heads; must divide the width"}, options.num_heads);
  field({"d_ff", Rule::positive, 49152, "Width inside the feed-forward networks"}, options.d_ff);
  field({"d_k"}, options.d_k);
  field({"d_v"}, options.d_v);
  field({"dropout", Rule::probability, 1, "Probability of dropping a unit"}, options.dropout);
  field({"attention_dropout", Rule::probability, 1, "Dropout of attention weights"}, options.attention_dropout);
  field({"activation_dropout", Rule::probability, 1, "Dropout inside feed-forward networks"},
        options.activation_dropout);
  field({"norm_first", Rule::any, 1, "Normalise before each sub-layer instead of after it"}, options.norm_first);
  field({"bias", Rule::any, 1, "Biases in linear maps and norms"}, options.bias);
  field({"activation"}, options.activation);
  field({"layer_norm_eps"}, options.layer_norm_eps);
  field({"layer_norm_form"}, options.layer_norm_form);
  field({"init"}, options.init);
}

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
  /// x is [B, S, d_model].
  Variable operator()(const Variable& x, const Mask& mask, Pass& pass) const;
  /// The same with any function of the sub-layer's input as the attention. Generation passes one that goes on from a
  /// state (nn/generate/decoder_state.h).
  template <class SelfAttention>
  Variable with_attention(const Variable& x, Pass& pass, const SelfAttention& self_attention) const {
    const Variable attended = with_residual(x, norm1, norm_first, dropout, pass, self_attention);
    return with_residual(attended, norm2, norm_first, dropout, pass,
                         [&](const Variable& in) { return feed_forward(in, pass); });
  }
  void visit(Visitor& v) override;
};

struct Encoder : Module {
  std::vector<EncoderLayer> layers;
  std::optional<LayerNorm> norm;  // the final norm

  Encoder(i64 num_layers, bool final_norm, const LayerOptions& options, Rng& rng);
  /// x is [B, S, d_model].
  Variable operator()(Variable x, const Mask& mask, Pass& pass) const;
  void visit(Visitor& v) override;
};

struct DecoderLayer : Module {
  Part<Attention> self_attn, multihead_attn;  // each a MultiHeadAttention, or an attention of your own
  FeedForward feed_forward;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout;
  bool norm_first;

  DecoderLayer(const LayerOptions& options, Rng& rng);
  /// x is [B, T, d_model], memory [B, S, d_model].
  Variable operator()(const Variable& x, const Variable& memory, const Mask& target_mask, const Mask& memory_mask,
                      Pass& pass) const;
  /// The same with any two functions of a sub-layer's input as the attentions. Generation passes functions that
  /// go on from states (nn/generate/decoder_state.h).
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
  /// Shapes as for one layer.
  Variable operator()(Variable x, const Variable& memory, const Mask& target_mask, const Mask& memory_mask,
                      Pass& pass) const;
  void visit(Visitor& v) override;
};

/// Encoder and decoder of a Transformer as one module. PyTorch's torch.nn.Transformer has neither embeddings nor a
/// generator: its state_dict holds "encoder.layers.0.self_attn..." and so on, and nothing else. Files of this module
/// have exactly those names, so it can be read from a state_dict, and written to one that load_state_dict(strict=True)
/// accepts. torch.nn.Transformer always has final norms, so `final_norm` must be true.
///   nn::Stacks stacks(model.encoder, model.decoder);
///   nn::load(stacks, "state_dict.safetensors");
/// The module refers to the stacks, so it must not outlive them.
struct Stacks : Module {
  Encoder& encoder;
  Decoder& decoder;

  Stacks(Encoder& encoder, Decoder& decoder) : encoder(encoder), decoder(decoder) {}
  /// Embedded source [B, S, d_model] and target [B, T, d_model] to [B, T, d_model]. `target_mask` must include
  /// Mask::causal() if the target must not see later positions.
  Variable operator()(const Variable& source, const Variable& target, const Mask& source_padding,
                      const Mask& target_mask, Pass& pass) const {
    return decoder(target, encoder(source, source_padding, pass), target_mask, source_padding, pass);
  }
  void visit(Visitor& v) override {
    v("encoder", encoder);
    v("decoder", decoder);
  }
};

/// A model that predicts each token from those before it, such as a GPT: embedded tokens, layers under a causal mask, a
/// norm, a head. Generation (nn/generate/) and the leak check (nn/check/leakcheck_models.h) need no more than this.
/// Shapes: ids i32 [B, T], T <= max_len(), x and hidden [B, T, d_model], logits [B, T, vocab_size()].
struct CausalModel : Module {
  std::vector<EncoderLayer> layers;

  virtual i64 vocab_size() const = 0;
  virtual i64 max_len() const = 0;
  virtual Dtype dtype() const = 0;
  /// The input of the first layer for ids that follow `first_position` others. Error: more positions than max_len().
  virtual Variable embed(const Tensor& ids, Pass& pass, i64 first_position = 0) const = 0;
  /// What follows the last layer and precedes the head.
  virtual Variable normalized(const Variable& x) const = 0;
  /// The logits of some positions of `hidden`, [..., d_model].
  virtual Variable head(const Variable& hidden) const = 0;

  /// Scores for every next token: the logits of ids. No position sees later ones, so trailing padding needs no mask. If
  /// its embeddings may hold NaN, infinity or huge numbers, `padding` says where it is, and they count as 0
  /// (nn/layers/padding.h).
  Variable operator()(const Tensor& ids, Pass& pass, const Mask& padding = {}) const {
    return head(hidden(ids, pass, padding));
  }
  /// The same before the head.
  Variable hidden(const Tensor& ids, Pass& pass, const Mask& padding = {}) const;
};

/// The loss of a model with a large vocabulary: the cross_entropy of the logits head(last) with `labels`. last
/// [B, T, d], labels i32 [B, T]. The logits are computed in chunks and never stored as a whole, unless the head was
/// replaced. Errors: those of `cross_entropy`.
inline Variable head_loss(const Linear& head, const Variable& last, const Tensor& labels,
                          const CrossEntropyOptions& options) {
  return head.is_plain() ? linear_cross_entropy(last, head.weight, head.bias, labels, options)
                         : cross_entropy(head(last), labels, options);
}

}  // namespace orrery::nn
