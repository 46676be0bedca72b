// Chapter 7. Gpt: its configuration, then: embed the tokens, apply the layers, compute the logits.
//
// Read next: nn/generate/decoding.h
#include "nn/models/gpt.h"

#include <cmath>

#include "autograd/ops/embedding.h"
#include "autograd/ops/fused/linear/linear_cross_entropy.h"
#include "autograd/ops/layout.h"
#include "core/tensor_ops.h"
#include "nn/attention/query_key_norm.h"
#include "nn/attention/rotary.h"
#include "nn/models/config_json.h"

namespace orrery::nn {
namespace {

constexpr std::string_view gpt_operation = "gpt config";

struct Preset {
  std::string_view name;
  i64 vocab_size, d_model, num_heads, num_layers, max_len;
};

constexpr i64 gpt2_tokens = 50257;
constexpr std::array<Preset, 7> presets{{
    {"nanogpt", 65, 128, 4, 4, 64},
    {"distilgpt2", gpt2_tokens, 768, 12, 6, 1024},
    {"gpt2", gpt2_tokens, 768, 12, 12, 1024},
    {"gpt2-medium", gpt2_tokens, 1024, 16, 24, 1024},
    {"gpt2-large", gpt2_tokens, 1280, 20, 36, 1024},
    {"gpt2-xl", gpt2_tokens, 1600, 25, 48, 1024},
    {"gpt3", gpt2_tokens, 12288, 96, 96, 2048},
}};

Tensor initial_table(i64 count, i64 d_model, Rng& rng) { return initial_weight(Init::normal_002, count, d_model, rng); }

}  // namespace

void GptConfig::validate() const {
  config_json::check_fields(gpt_operation, *this);
  layer.validate(gpt_operation);
  check(layer.init == LayerOptions{}.init || layer.init == Init::normal_002, gpt_operation,
        "init cannot be chosen: a GPT's weights start from N(0, 0.02^2)");
  check(!rotary || layer.head_size() % 2 == 0, gpt_operation, "rotary needs heads of an even size, not of ",
        layer.head_size());
}

LayerOptions GptConfig::layers() const {
  LayerOptions all = layer;
  all.attention_dropout = layer.attention_dropout.value_or(layer.dropout);
  all.activation_dropout = layer.activation_dropout.value_or(0);
  all.activation = layer.activation.value_or(Activation::gelu_tanh);
  all.norm_first = true;
  all.init = Init::normal_002;
  return all;
}

i64 GptConfig::parameter_count() const {
  GptConfig config = *this;
  config.rotary = false;  // its tables are no parameters, and would take memory
  return config_json::counted<Gpt>(config, {&GptConfig::num_layers});
}

GptConfig GptConfig::of_json(const std::string& json) { return config_json::config_of<GptConfig>(json, gpt_operation); }

bool operator==(const GptConfig& a, const GptConfig& b) { return to_json(a) == to_json(b); }

GptConfig gpt_preset(const std::string& name) {
  for (const Preset& p : presets) {
    if (p.name != name) continue;
    GptConfig config{.vocab_size = p.vocab_size,
                     .layer = {.d_model = p.d_model, .num_heads = p.num_heads, .d_ff = 4 * p.d_model},
                     .num_layers = p.num_layers,
                     .max_len = p.max_len};
    LayerOptions& layer = config.layer;
    if (name == "nanogpt") {
      layer.dropout = 0;
      layer.bias = false;
      layer.activation = Activation::gelu;
    }
    return config;
  }
  std::string known;
  for (const std::string& other : gpt_preset_names()) known += (known.empty() ? "" : ", ") + other;
  fail(gpt_operation, "no preset is called '", name, "'; there are: ", known);
}

std::vector<std::string> gpt_preset_names() {
  std::vector<std::string> names;
  for (const Preset& p : presets) names.emplace_back(p.name);
  return names;
}

std::string to_json(const GptConfig& config) {
  GptConfig complete = config;
  complete.layer = config.layers();
  return config_json::text_of(complete);
}

Gpt::Gpt(const GptConfig& config, Rng& rng)
    : config(config_json::valid(config)),
      token_embedding(initial_table(config.vocab_size, config.layer.d_model, rng)),
      position_embedding(initial_table(config.max_len, config.layer.d_model, rng)),
      final_norm(config.layer.d_model, config.layers().norm(), rng),
      lm_head(Variable(), Variable()),
      dropout(config.layer.dropout) {
  const double residual_layers = 2.0 * static_cast<double>(config.num_layers),
               factor = 1.0 / std::sqrt(residual_layers);
  const auto scale = [&](Variable& weight) {
    if (!rng.draws_shapes()) scale_in_place(weight.mutable_value(), factor);
  };
  for (i64 i = 0; i < config.num_layers; ++i) {
    EncoderLayer& layer = layers.emplace_back(config.layers(), rng);
    auto& attention = layer.self_attn.as<MultiHeadAttention>();
    scale(attention.out_proj.weight);
    if (config.rotary) attention.query_key_map = Rotary(config.max_len, attention.d_k);
    if (config.query_key_norm)
      attention.query_key_map = QueryKeyNorm(config.max_len, std::move(attention.query_key_map));
    scale(layer.feed_forward.linear2.weight);
  }
  if (!config.tied) lm_head.weight = parameter(initial_table(config.vocab_size, config.layer.d_model, rng));
  name_parameters();
}

Variable Gpt::embed(const Tensor& ids, Pass& pass, i64 first_position) const {
  const i64 end = first_position + dims<2>(ids, "ids")[1];
  check(end <= config.max_len, "gpt", "a sequence has ", end, " positions, but max_len is ", config.max_len);
  const Variable& positions = position_embedding.weight;
  const double p = dropout.active(pass);
  return embedding_sum(token_embedding.weight, ids, 1.0,
                       first_position > 0 ? slice(positions, 0, first_position) : positions, p, pass.draw_for(p));
}

Variable Gpt::head(const Variable& hidden) const {
  return lm_head.is_plain() ? linear(hidden, classes(), lm_head.bias) : lm_head(hidden);
}

Variable Gpt::loss(const Tensor& ids, const Tensor& labels, Pass& pass, const CrossEntropyOptions& options) const {
  // Labels of another shape are the loss's error.
  const bool fit = labels.defined() && labels.shape() == ids.shape();
  const Mask padding = fit ? Mask::padding(lengths_of(labels, options.ignore_index)) : Mask();
  const Variable last = hidden(ids, pass, padding);
  if (!lm_head.is_plain()) return head_loss(lm_head, last, labels, options);
  return linear_cross_entropy(last, classes(), lm_head.bias, labels, options);  // a tied head has no weight of its own
}

Gpt Gpt::clone() {
  Rng zeros = Rng::of_zeros();
  return cloned(*this, Gpt(config, zeros));
}

void Gpt::visit(Visitor& v) {
  v("token_embedding", token_embedding);
  v("position_embedding", position_embedding);
  v("layers", layers);
  v("final_norm", final_norm);
  v("lm_head", lm_head);
}

}  // namespace orrery::nn
