// Chapter 7. Encoder: a layer of two sub-layers, and the stack of layers.
#include "nn/models/encoder.h"

namespace orrery::nn {

EncoderLayer::EncoderLayer(const LayerOptions& options, Rng& rng)
    : self_attn(MultiHeadAttention(options.d_model, options.num_heads, rng, options.attention())),
      feed_forward(options.d_model, options.d_ff, rng, options.feed_forward()),
      norm1(options.d_model, options.norm()),
      norm2(options.d_model, options.norm()),
      dropout(options.dropout),
      norm_first(options.norm_first) {}

double EncoderLayer::parameter_count(const LayerOptions& o) {
  return MultiHeadAttention::parameter_count(o.d_model, o.num_heads, o.attention()) +
         FeedForward::parameter_count(o.d_model, o.d_ff, o.feed_forward()) +
         2 * LayerNorm::parameter_count(o.d_model, o.norm());
}

Variable EncoderLayer::operator()(const Variable& input, const Mask& mask, Pass& pass, Tensor* weights) const {
  const Variable x = with_harmless_padding(input, mask);
  const auto attend = [&](const Variable& in) { return self_attn->self_attention(in, mask, pass, weights); };
  const Variable attended = with_residual(x, norm1, norm_first, dropout, pass, attend);
  return with_residual(attended, norm2, norm_first, dropout, pass,
                       [&](const Variable& in) { return feed_forward(in, pass); });
}

void EncoderLayer::visit(Visitor& v) {
  v("self_attn", self_attn);
  v.inlined(feed_forward);
  v("norm1", norm1);
  v("norm2", norm2);
}

Encoder::Encoder(i64 num_layers, bool final_norm, const LayerOptions& options, Rng& rng) {
  for (i64 i = 0; i < num_layers; ++i) layers.emplace_back(options, rng);
  if (final_norm) norm.emplace(options.d_model, options.norm());
}

Variable Encoder::operator()(Variable x, const Mask& mask, Pass& pass, std::vector<Tensor>* weights) const {
  for (const EncoderLayer& layer : layers) x = layer(x, mask, pass, weights ? &weights->emplace_back() : nullptr);
  return norm ? (*norm)(x) : x;
}

void Encoder::visit(Visitor& v) {
  v("layers", layers);
  v("norm", norm);
}

}  // namespace orrery::nn
