// Chapter 7. LayerOptions: the sizes and options of layers, one struct for Transformer and GPT.
//
// A `std::optional` field without a value gets the model's own default: ReLU in the paper's layers, GELU in a GPT's.
#pragma once

#include <optional>

#include "autograd/ops/layer_norm.h"
#include "nn/attention/attention.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/layer_norm.h"

namespace orrery::nn {

/// Sizes and options of the layers of an encoder, a decoder or a GPT.
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

/// Calls field(name, value) for every field, by its name in files (nn/models/config_json.h).
template <class Field>
void for_each_field(LayerOptions& options, Field&& field) {
  field("d_model", options.d_model);
  field("num_heads", options.num_heads);
  field("d_ff", options.d_ff);
  field("d_k", options.d_k);
  field("d_v", options.d_v);
  field("dropout", options.dropout);
  field("attention_dropout", options.attention_dropout);
  field("activation_dropout", options.activation_dropout);
  field("norm_first", options.norm_first);
  field("bias", options.bias);
  field("activation", options.activation);
  field("layer_norm_eps", options.layer_norm_eps);
  field("layer_norm_form", options.layer_norm_form);
  field("init", options.init);
}

}  // namespace orrery::nn
