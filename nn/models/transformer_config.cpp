// Chapter 7. TransformerConfig: checking it, its presets, and its fields by name.
#include "nn/models/transformer_config.h"

#include "nn/models/config_json.h"
#include "nn/models/decoder.h"

namespace orrery::nn {
namespace {

constexpr std::string_view transformer_operation = "transformer config";

TransformerConfig of_paper(i64 vocab_size, const LayerOptions& layer) {
  return {.src_vocab_size = vocab_size, .tgt_vocab_size = vocab_size, .layer = layer, .share_embeddings = true};
}

}  // namespace

// Calls field(name, value) for every field (nn/models/config_json.h).
template <class Field>
static void for_each_field(TransformerConfig& config, Field&& field) {
  field("src_vocab_size", config.src_vocab_size);
  field("tgt_vocab_size", config.tgt_vocab_size);
  for_each_field(config.layer, field);
  field("num_encoder_layers", config.num_encoder_layers);
  field("num_decoder_layers", config.num_decoder_layers);
  field("final_norm", config.final_norm);
  field("max_len", config.max_len);
  field("pad_id", config.pad_id);
  field("share_embeddings", config.share_embeddings);
  field("generator_bias", config.generator_bias);
  field("positions", config.positions);
}

void TransformerConfig::validate() const {
  using config_json::check_positive;
  config_json::check_vocabularies(transformer_operation, *this);
  check_positive(transformer_operation, "num_encoder_layers", num_encoder_layers);
  check_positive(transformer_operation, "num_decoder_layers", num_decoder_layers);
  check_positive(transformer_operation, "max_len", max_len);
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
  const LayerOptions options = layers();
  const double source = static_cast<double>(src_vocab_size), target = static_cast<double>(tgt_vocab_size),
               d_model = static_cast<double>(layer.d_model);
  const double logits = Linear::parameter_count(layer.d_model, tgt_vocab_size, generator());
  const double tied = share_embeddings ? 2 * target * d_model : 0;  // two names of the source's table
  const double learned = positions == Positions::learned ? 2 * static_cast<double>(max_len) * d_model : 0;
  const double norms = final_norm ? 2 * LayerNorm::parameter_count(layer.d_model, options.norm()) : 0;
  return config_json::whole((source + target) * d_model + logits - tied + learned + norms +
                            static_cast<double>(num_encoder_layers) * EncoderLayer::parameter_count(options) +
                            static_cast<double>(num_decoder_layers) * DecoderLayer::parameter_count(options));
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

TransformerConfig transformer_config(const std::string& text) {
  return config_json::config_of<TransformerConfig>(text, transformer_operation);
}

}  // namespace orrery::nn
