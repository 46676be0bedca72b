// Chapter 7. The stacks of the models: checking their options, layers of sub-layers, and stacks of layers.
#include "nn/models/stack.h"

namespace orrery::nn {

void LayerOptions::validate(std::string_view operation) const {
  config_json::check_fields(operation, *this);
  check(d_k >= 0 && d_v >= 0, operation, "d_k and d_v must be positive, or 0 for d_model / num_heads, not ", d_k,
        " and ", d_v);
  check((d_k > 0 && d_v > 0) || d_model % num_heads == 0, operation, "d_model (", d_model,
        ") is not a multiple of num_heads (", num_heads, "); give d_k and d_v");
  const auto size = [&](i64 given) { return static_cast<double>(given > 0 ? given : d_model / num_heads); };
  const double columns = static_cast<double>(num_heads) * (2 * size(d_k) + size(d_v));
  check(columns < 0x1p32, operation, "queries, keys and values of all heads must have fewer than 2^32 columns, not ",
        columns);
  check(layer_norm_eps > 0 && layer_norm_eps < 1, operation, "layer_norm_eps must be in (0, 1), not ", layer_norm_eps);
}

EncoderLayer::EncoderLayer(const LayerOptions& options, Rng& rng)
    : self_attn(MultiHeadAttention(options.d_model, options.num_heads, rng, options.attention())),
      feed_forward(options.d_model, options.d_ff, rng, options.feed_forward()),
      norm1(options.d_model, options.norm(), rng),
      norm2(options.d_model, options.norm(), rng),
      dropout(options.dropout),
      norm_first(options.norm_first) {}

Variable EncoderLayer::operator()(const Variable& x, const Mask& mask, Pass& pass) const {
  return with_attention(with_harmless_padding(x, mask), pass,
                        [&](const Variable& in) { return self_attn->self_attention(in, mask, pass); });
}

// The order of use in a layer that normalises first, as GPTs always were visited: the sum of squares by which gradients
// are clipped, and the fingerprint of a training, depend on it.
void EncoderLayer::visit(Visitor& v) {
  if (norm_first) v("norm1", norm1);
  v("self_attn", self_attn);
  if (norm_first) v("norm2", norm2);
  v.inlined(feed_forward);
  if (norm_first) return;
  v("norm1", norm1);
  v("norm2", norm2);
}

Encoder::Encoder(i64 num_layers, bool final_norm, const LayerOptions& options, Rng& rng) {
  for (i64 i = 0; i < num_layers; ++i) layers.emplace_back(options, rng);
  if (final_norm) norm.emplace(options.d_model, options.norm(), rng);
}

Variable Encoder::operator()(Variable x, const Mask& mask, Pass& pass) const {
  for (const EncoderLayer& layer : layers) x = layer(x, mask, pass);
  return norm ? (*norm)(x) : x;
}

void Encoder::visit(Visitor& v) {
  v("layers", layers);
  v("norm", norm);
}

DecoderLayer::DecoderLayer(const LayerOptions& options, Rng& rng)
    : self_attn(MultiHeadAttention(options.d_model, options.num_heads, rng, options.attention())),
      multihead_attn(MultiHeadAttention(options.d_model, options.num_heads, rng, options.attention())),
      feed_forward(options.d_model, options.d_ff, rng, options.feed_forward()),
      norm1(options.d_model, options.norm(), rng),
      norm2(options.d_model, options.norm(), rng),
      norm3(options.d_model, options.norm(), rng),
      dropout(options.dropout),
      norm_first(options.norm_first) {}

Variable DecoderLayer::operator()(const Variable& x, const Variable& memory, const Mask& target_mask,
                                  const Mask& memory_mask, Pass& pass) const {
  return with_attentions(
      with_harmless_padding(x, target_mask), pass,
      [&](const Variable& in) { return self_attn->self_attention(in, target_mask, pass); },
      [&](const Variable& in) { return multihead_attn(in, memory, memory_mask, pass); });
}

void DecoderLayer::visit(Visitor& v) {
  v("self_attn", self_attn);
  v("multihead_attn", multihead_attn);
  v.inlined(feed_forward);
  v("norm1", norm1);
  v("norm2", norm2);
  v("norm3", norm3);
}

Decoder::Decoder(i64 num_layers, bool final_norm, const LayerOptions& options, Rng& rng) {
  for (i64 i = 0; i < num_layers; ++i) layers.emplace_back(options, rng);
  if (final_norm) norm.emplace(options.d_model, options.norm(), rng);
}

Variable Decoder::operator()(Variable x, const Variable& given_memory, const Mask& target_mask, const Mask& memory_mask,
                             Pass& pass) const {
  const Variable memory = with_harmless_padding(given_memory, memory_mask);  // once for all layers
  for (const DecoderLayer& layer : layers) x = layer(x, memory, target_mask, memory_mask, pass);
  return norm ? (*norm)(x) : x;
}

void Decoder::visit(Visitor& v) {
  v("layers", layers);
  v("norm", norm);
}

Variable CausalModel::hidden(const Tensor& ids, Pass& pass, const Mask& padding) const {
  Variable x = with_harmless_padding(embed(ids, pass), padding);
  for (const EncoderLayer& layer : layers) x = layer(x, Mask::causal(), pass);
  return normalized(x);
}

}  // namespace orrery::nn
