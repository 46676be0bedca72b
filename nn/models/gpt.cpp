// Chapter 7. Gpt: embed the tokens, apply the layers, compute the logits.
//
// Read next: nn/generate/decoding.h
#include "nn/models/gpt.h"

#include <cmath>

#include "autograd/ops/embedding.h"
#include "autograd/ops/fused/linear/linear_cross_entropy.h"
#include "core/tensor_ops.h"
#include "nn/attention/query_key_norm.h"
#include "nn/attention/rotary.h"
#include "nn/models/config_rules.h"
#include "nn/models/head_loss.h"

namespace orrery::nn {
namespace {

Tensor initial_table(i64 count, i64 d_model, Rng& rng) { return initial_weight(Init::normal_002, count, d_model, rng); }

AttentionOptions with_names(AttentionOptions options) {
  options.names = AttentionNames::gpt2;
  return options;
}
FeedForwardOptions with_names(FeedForwardOptions options) {
  options.names = FeedForwardNames::gpt2;
  return options;
}

}  // namespace

GptLayer::GptLayer(const LayerOptions& options, Rng& rng)
    : norm1(options.d_model, options.norm()),
      self_attn(MultiHeadAttention(options.d_model, options.num_heads, rng, with_names(options.attention()))),
      norm2(options.d_model, options.norm()),
      feed_forward(options.d_model, options.d_ff, rng, with_names(options.feed_forward())),
      dropout(options.dropout) {}

Variable GptLayer::operator()(const Variable& x, const Mask& mask, Pass& pass, Tensor* weights) const {
  return with_attention(with_harmless_padding(x, mask), pass,
                        [&](const Variable& in) { return self_attn->self_attention(in, mask, pass, weights); });
}

void GptLayer::visit(Visitor& v) {
  v("ln_1", norm1);
  v("attn", self_attn);
  v("ln_2", norm2);
  v("mlp", feed_forward);
}

Gpt::Gpt(const GptConfig& config, Rng& rng)
    : config(config_json::valid(config)),
      token_embedding(initial_table(config.vocab_size, config.layer.d_model, rng)),
      position_embedding(initial_table(config.max_len, config.layer.d_model, rng)),
      final_norm(config.layer.d_model, config.layers().norm()),
      lm_head(Variable(), Variable()),
      dropout(config.layer.dropout) {
  const double residual_layers = 2.0 * static_cast<double>(config.num_layers),
               factor = 1.0 / std::sqrt(residual_layers);
  for (i64 i = 0; i < config.num_layers; ++i) {
    GptLayer& layer = layers.emplace_back(config.layers(), rng);
    auto& attention = layer.self_attn.as<MultiHeadAttention>();
    scale_in_place(attention.out_proj.weight.mutable_value(), factor);
    if (config.rotary) attention.query_key_map = Rotary(config.max_len, attention.d_k);
    if (config.query_key_norm)
      attention.query_key_map = QueryKeyNorm(config.max_len, std::move(attention.query_key_map));
    scale_in_place(layer.feed_forward.linear2.weight.mutable_value(), factor);
  }
  if (!config.tied) lm_head.weight = parameter(initial_table(config.vocab_size, config.layer.d_model, rng));
  name_parameters();
}

Variable Gpt::operator()(const Tensor& ids, Pass& pass, std::vector<Tensor>* weights, const Mask& padding) const {
  return head(hidden(ids, pass, weights, padding));
}

Variable Gpt::hidden(const Tensor& ids, Pass& pass, std::vector<Tensor>* weights, const Mask& padding) const {
  Variable x = with_harmless_padding(embed(ids, pass), padding);
  for (const GptLayer& layer : layers) x = layer(x, Mask::causal(), pass, weights ? &weights->emplace_back() : nullptr);
  return final_norm(x);
}

Variable Gpt::embed(const Tensor& ids, Pass& pass) const {
  const i64 T = dims<2>(ids, "ids")[1];
  check(T <= config.max_len, "gpt", "a sequence has ", T, " positions, but max_len is ", config.max_len);
  const double p = dropout.active(pass);
  return embedding_sum(token_embedding.weight, ids, 1.0, position_embedding.weight, p, pass.draw_for(p));
}

Variable Gpt::head(const Variable& hidden) const {
  return lm_head.is_plain() ? linear(hidden, classes(), lm_head.bias) : lm_head(hidden);
}

Variable Gpt::loss(const Tensor& ids, const Tensor& labels, Pass& pass, const CrossEntropyOptions& options) const {
  // Labels of another shape are the loss's error.
  const bool fit = labels.defined() && labels.shape() == ids.shape();
  const Mask padding = fit ? Mask::padding(lengths_of(labels, options.ignore_index)) : Mask();
  const Variable last = hidden(ids, pass, nullptr, padding);
  if (!lm_head.is_plain()) return head_loss(lm_head, last, labels, options);
  return linear_cross_entropy(last, classes(), lm_head.bias, labels, options);  // a tied head has no weight of its own
}

Gpt Gpt::clone() {
  Rng zeros = Rng::of_zeros();
  return cloned(*this, Gpt(config, zeros));
}

void Gpt::visit(Visitor& v) {
  v("wte", token_embedding);
  v("wpe", position_embedding);
  v("h", layers);
  v("ln_f", final_norm);
  v("lm_head", lm_head);
}

}  // namespace orrery::nn
