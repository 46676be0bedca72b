// Chapter 7. Transformer: embed, encode, decode, score.
//
// Read next: ?
#include "nn/transformer.h"

#include <cmath>

namespace orrery::nn {
namespace {

const TransformerConfig& valid(const TransformerConfig& config) {
  config.validate();
  return config;
}

Mask padding_mask(const Tensor& ids, i32 pad_id) {
  return pad_id < 0 ? Mask() : Mask::padding(lengths_of(ids, pad_id));
}

}  // namespace

Transformer::Transformer(const TransformerConfig& config, Rng& rng)
    : config_(valid(config)),
      src_embed_(config.src_vocab_size, config.d_model, rng),
      tgt_embed_(config.tgt_vocab_size, config.d_model, rng),
      src_positions_(config.positions, config.max_len, config.d_model, rng),
      tgt_positions_(config.positions, config.max_len, config.d_model, rng),
      encoder_(config.num_encoder_layers, config.final_norm, config.layer(), rng),
      decoder_(config.num_decoder_layers, config.final_norm, config.layer(), rng),
      generator_(config.d_model, config.tgt_vocab_size, rng, {.bias = config.bias, .init = config.init}),
      dropout_(config.dropout) {
  if (config.share_embeddings) tgt_embed_.weight = generator_.weight = src_embed_.weight;
  parameters();  // tells every parameter its name
}

Variable Transformer::operator()(const Tensor& source, const Tensor& target, Pass& pass, AttentionMaps* maps) const {
  return (*this)(source, target, masks(source, target), pass, maps);
}

Variable Transformer::operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks, Pass& pass,
                                 AttentionMaps* maps) const {
  return decode(target, encode(source, masks.source, pass, maps), masks.target, masks.memory, pass, maps);
}

Variable Transformer::encode(const Tensor& source, const Mask& source_mask, Pass& pass, AttentionMaps* maps) const {
  return encoder_(embed(source, src_embed_, src_positions_, pass), source_mask, pass, maps ? &maps->encoder : nullptr);
}

Variable Transformer::decode(const Tensor& target, const Variable& memory, const Mask& target_mask,
                             const Mask& memory_mask, Pass& pass, AttentionMaps* maps) const {
  return generator_(decoder_(embed(target, tgt_embed_, tgt_positions_, pass), memory, target_mask, memory_mask, pass,
                             maps ? &maps->decoder_self : nullptr, maps ? &maps->decoder_cross : nullptr));
}

Variable Transformer::embed(const Tensor& ids, const Embedding& table, const PositionalEncoding& positions,
                            Pass& pass) const {
  const double root_d_model = std::sqrt(static_cast<double>(config_.d_model));
  return dropout_(positions(table(ids) * root_d_model), pass);
}

TransformerMasks Transformer::masks(const Tensor& source, const Tensor& target) const {
  return {.source = source_mask(source), .target = target_mask(target), .memory = source_mask(source)};
}

Mask Transformer::source_mask(const Tensor& source) const { return padding_mask(source, config_.pad_id); }
Mask Transformer::target_mask(const Tensor& target) const {
  return Mask::causal() & padding_mask(target, config_.pad_id);
}

Transformer Transformer::clone() {
  Rng unused(0);
  Transformer copy(config_, unused);
  to(copy, src_embed_.weight.dtype());
  copy_parameters(*this, copy);
  return copy;
}

void Transformer::visit(Visitor& v) {
  v("src_embed", src_embed_);
  v("tgt_embed", tgt_embed_);
  v("src_positions", src_positions_);
  v("tgt_positions", tgt_positions_);
  v("encoder", encoder_);
  v("decoder", decoder_);
  v("generator", generator_);
}

}  // namespace orrery::nn
