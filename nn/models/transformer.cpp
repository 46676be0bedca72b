// Chapter 7. Transformer: its configuration, then: embed the tokens, encode, decode, compute the logits.
//
// Read next: nn/models/gpt.h
#include "nn/models/transformer.h"

#include <cmath>

#include "autograd/ops/embedding.h"
#include "nn/models/config_json.h"

namespace orrery::nn {

namespace {

constexpr std::string_view transformer_operation = "transformer config";

TransformerConfig of_paper(i64 vocab_size, const LayerOptions& layer) {
  return {.src_vocab_size = vocab_size, .tgt_vocab_size = vocab_size, .layer = layer, .share_embeddings = true};
}

}  // namespace

void TransformerConfig::validate() const {
  config_json::check_fields(transformer_operation, *this);
  config_json::check_vocabularies(transformer_operation, *this);
  check(!copy || src_vocab_size == tgt_vocab_size, transformer_operation,
        "copy needs one vocabulary, but the sizes are ", src_vocab_size, " and ", tgt_vocab_size);
  layer.validate(transformer_operation);
}

LayerOptions TransformerConfig::layers() const {
  LayerOptions all = layer;
  all.attention_dropout = layer.attention_dropout.value_or(layer.dropout);
  all.activation_dropout = layer.activation_dropout.value_or(layer.dropout);
  all.activation = layer.activation.value_or(Activation::relu);
  return all;
}

LinearOptions TransformerConfig::generator() const {
  LinearOptions options = layers().linear();
  options.bias = options.bias && generator_bias;
  return options;
}

i64 TransformerConfig::parameter_count() const {
  return config_json::counted<Transformer>(
      *this, {&TransformerConfig::num_encoder_layers, &TransformerConfig::num_decoder_layers});
}

double TransformerConfig::table_numbers() const {
  const double of_one = static_cast<double>(max_len) * static_cast<double>(layer.d_model);
  return positions == Positions::sinusoidal ? 2 * of_one : 0;
}

TransformerConfig TransformerConfig::of_json(const std::string& json) {
  return config_json::config_of<TransformerConfig>(json, transformer_operation);
}

bool operator==(const TransformerConfig& a, const TransformerConfig& b) { return to_json(a) == to_json(b); }

TransformerConfig base(i64 vocab_size) {
  return of_paper(vocab_size, {.attention_dropout = 0, .activation_dropout = 0});
}

TransformerConfig big(i64 vocab_size) {
  return of_paper(vocab_size, {.d_model = 1024,
                               .num_heads = 16,
                               .d_ff = 4096,
                               .dropout = 0.3,
                               .attention_dropout = 0,
                               .activation_dropout = 0});
}

TransformerConfig tiny(i64 vocab_size) {
  TransformerConfig config = of_paper(
      vocab_size,
      {.d_model = 128, .num_heads = 4, .d_ff = 256, .dropout = 0.3, .attention_dropout = 0, .activation_dropout = 0});
  config.num_encoder_layers = config.num_decoder_layers = 4;
  config.generator_bias = false;
  return config;
}

std::string to_json(const TransformerConfig& config) {
  TransformerConfig complete = config;
  complete.layer = config.layers();
  return config_json::text_of(complete);
}

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
  if (config.copy) copy.emplace(config.layer.d_model, rng, config.layers().linear());
  if (config.share_embeddings) tgt_embed.weight = generator.weight = src_embed.weight;
  name_parameters();
}

Variable Transformer::operator()(const Tensor& source, const Tensor& target, Pass& pass) const {
  return (*this)(source, target, masks(source, target), pass);
}

Variable Transformer::operator()(const Tensor& source, const Tensor& target, const TransformerMasks& masks,
                                 Pass& pass) const {
  return decode(target, encode(source, masks.source, pass), masks.target, masks.memory, pass, source);
}

Variable Transformer::encode(const Tensor& source, const Mask& source_mask, Pass& pass) const {
  return encoder(embed(source, src_embed, src_positions, pass), source_mask, pass);
}

Variable Transformer::loss(const Tensor& source, const Tensor& target, const Tensor& labels, Pass& pass,
                           const CrossEntropyOptions& options) const {
  const TransformerMasks mask = masks(source, target);
  const Variable memory = encode(source, mask.source, pass);
  if (copy) return cross_entropy(decode(target, memory, mask.target, mask.memory, pass, source), labels, options);
  const Variable last = hidden(target, memory, mask.target, mask.memory, pass);
  return head_loss(generator, last, labels, options);
}

Variable Transformer::hidden(const Tensor& target, const Variable& memory, const Mask& target_mask,
                             const Mask& memory_mask, Pass& pass) const {
  return decoder(embed(target, tgt_embed, tgt_positions, pass), memory, target_mask, memory_mask, pass);
}

Variable Transformer::logits(const Variable& hidden, const std::optional<CopySource>& copied,
                             const Tensor& target) const {
  check(copied.has_value() == copy.has_value(), "transformer", "what can be copied is of another model");
  if (!copied) return generator(hidden);
  return (*copy)(hidden, generator(hidden), *copied, target);
}

std::optional<CopySource> Transformer::copied(const Tensor& source, const Variable& memory,
                                              const Mask& memory_mask) const {
  return copy ? std::optional(copy->read(source, memory, memory_mask)) : std::nullopt;
}

Variable Transformer::decode(const Tensor& target, const Variable& given_memory, const Mask& target_mask,
                             const Mask& memory_mask, Pass& pass, const Tensor& source) const {
  // Once for the decoder and for copying.
  const Variable memory = copy ? with_harmless_padding(given_memory, memory_mask) : given_memory;
  const Variable last = hidden(target, memory, target_mask, memory_mask, pass);
  return logits(last, copied(source, memory, memory_mask), target);
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
  v("copy", copy);
}

}  // namespace orrery::nn
