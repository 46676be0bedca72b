// Chapter 7. Transformer: embed the tokens, encode, decode, compute the logits.
//
// Read next: nn/models/gpt.h
#include "nn/models/transformer.h"

#include <cmath>

#include "autograd/ops/embedding.h"
#include "nn/models/config_rules.h"
#include "nn/models/head_loss.h"

namespace orrery::nn {

Transformer::Transformer(const TransformerConfig& config, Rng& rng)
    : config(config_json::valid(config)),
      src_embed(config.src_vocab_size, config.layer.d_model, rng),
      tgt_embed(config.tgt_vocab_size, config.layer.d_model, rng),
      src_positions(config.positions, config.max_len, config.layer.d_model, rng),
      tgt_positions(config.positions, config.max_len, config.layer.d_model, rng),
      encoder(config.num_encoder_layers, config.final_norm, config.layers(), rng),
      decoder(config.num_decoder_layers, config.final_norm, config.layers(), rng),
      generator(config.layer.d_model, config.tgt_vocab_size, rng, config.generator()),
      dropout(config.layer.dropout) {
  if (config.share_embeddings) tgt_embed.weight = generator.weight = src_embed.weight;
  name_parameters();
}

Variable Transformer::operator()(const Tensor& source, const Tensor& target, Pass& pass, AttentionMaps* maps) const {
  return (*this)(source, target, masks(source, target), pass, maps);
}

Variable Transformer::operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks, Pass& pass,
                                 AttentionMaps* maps) const {
  return decode(target, encode(source, masks.source, pass, maps), masks.target, masks.memory, pass, maps);
}

Variable Transformer::encode(const Tensor& source, const Mask& source_mask, Pass& pass, AttentionMaps* maps) const {
  return encoder(embed(source, src_embed, src_positions, pass), source_mask, pass, maps ? &maps->encoder : nullptr);
}

Variable Transformer::loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                           const CrossEntropyOptions& options) const {
  const TransformerMasks mask = masks(source, target);
  const Variable memory = encode(source, mask.source, pass);
  const Variable last = hidden(target, memory, mask.target, mask.memory, pass);
  return head_loss(generator, last, labels, options);
}

Variable Transformer::hidden(const Tensor& target, const Variable& memory, const Mask& target_mask,
                             const Mask& memory_mask, Pass& pass, AttentionMaps* maps) const {
  return decoder(embed(target, tgt_embed, tgt_positions, pass), memory, target_mask, memory_mask, pass,
                 maps ? &maps->decoder_self : nullptr, maps ? &maps->decoder_cross : nullptr);
}

Variable Transformer::decode(const Tensor& target, const Variable& memory, const Mask& target_mask,
                             const Mask& memory_mask, Pass& pass, AttentionMaps* maps) const {
  return generator(hidden(target, memory, target_mask, memory_mask, pass, maps));
}

Variable Transformer::embed(const Tensor& ids, const Embedding& table, const PositionalEncoding& positions,
                            Pass& pass) const {
  const double root_d_model = std::sqrt(static_cast<double>(config.layer.d_model)), p = dropout.active(pass);
  const Variable rows = positions.first_rows(dims<2>(ids, "ids")[1], table.weight.dtype());
  return embedding_sum(table.weight, ids, root_d_model, rows, p, pass.draw_for(p));
}

TransformerMasks Transformer::masks(const Tensor& source, const Tensor& target) const {
  const Mask source_padding = padding(source);
  return {.source = source_padding, .target = Mask::causal() & padding(target), .memory = source_padding};
}

Mask Transformer::padding(const Tensor& ids) const { return padding_of(ids, config.pad_id); }

Transformer Transformer::clone() {
  Rng zeros = Rng::of_zeros();
  return cloned(*this, Transformer(config, zeros));
}

void Transformer::visit(Visitor& v) {
  v("src_embed", src_embed);
  v("tgt_embed", tgt_embed);
  v("src_positions", src_positions);
  v("tgt_positions", tgt_positions);
  v("encoder", encoder);
  v("decoder", decoder);
  v("generator", generator);
}

}  // namespace orrery::nn
