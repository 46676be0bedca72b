// Chapter 7. Decoder: a layer of three sub-layers, and the stack of layers.
#include "nn/models/decoder.h"

namespace orrery::nn {

DecoderLayer::DecoderLayer(const LayerOptions& options, Rng& rng)
    : self_attn(MultiHeadAttention(options.d_model, options.num_heads, rng, options.attention())),
      multihead_attn(MultiHeadAttention(options.d_model, options.num_heads, rng, options.attention())),
      feed_forward(options.d_model, options.d_ff, rng, options.feed_forward()),
      norm1(options.d_model, options.norm()),
      norm2(options.d_model, options.norm()),
      norm3(options.d_model, options.norm()),
      dropout(options.dropout),
      norm_first(options.norm_first) {}

double DecoderLayer::parameter_count(const LayerOptions& o) {
  return EncoderLayer::parameter_count(o) + MultiHeadAttention::parameter_count(o.d_model, o.num_heads, o.attention()) +
         LayerNorm::parameter_count(o.d_model, o.norm());
}

Variable DecoderLayer::operator()(const Variable& x, const Variable& memory, const Mask& target_mask,
                                  const Mask& memory_mask, Pass& pass, Tensor* self_weights,
                                  Tensor* cross_weights) const {
  return with_attentions(
      with_harmless_padding(x, target_mask), pass,
      [&](const Variable& in) { return self_attn->self_attention(in, target_mask, pass, self_weights); },
      [&](const Variable& in) { return multihead_attn(in, memory, memory_mask, pass, cross_weights); });
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
  if (final_norm) norm.emplace(options.d_model, options.norm());
}

Variable Decoder::operator()(Variable x, const Variable& given_memory, const Mask& target_mask, const Mask& memory_mask,
                             Pass& pass, std::vector<Tensor>* self_weights, std::vector<Tensor>* cross_weights) const {
  const Variable memory = with_harmless_padding(given_memory, memory_mask);  // once for all layers
  for (const DecoderLayer& layer : layers) {
    x = layer(x, memory, target_mask, memory_mask, pass, self_weights ? &self_weights->emplace_back() : nullptr,
              cross_weights ? &cross_weights->emplace_back() : nullptr);
  }
  return norm ? (*norm)(x) : x;
}

void Decoder::visit(Visitor& v) {
  v("layers", layers);
  v("norm", norm);
}

}  // namespace orrery::nn
