// Chapter 7. TransformerConfig: its rules, its presets, and its fields by name.
//
// Serves: nn/models/transformer.h
#include "nn/models/transformer_config.h"

#include "nn/models/config_json.h"

namespace orrery::nn {
namespace {

constexpr std::string_view transformer_operation = "transformer config";

TransformerConfig of_paper(i64 vocab_size) {
  return {.src_vocab_size = vocab_size,
          .tgt_vocab_size = vocab_size,
          .attention_dropout = 0,
          .activation_dropout = 0,
          .share_embeddings = true};
}

}  // namespace

// Calls field(name, value) for every field (nn/models/config_json.h).
template <class Field>
static void for_each_field(TransformerConfig& config, Field&& field) {
  field("src_vocab_size", config.src_vocab_size);
  field("tgt_vocab_size", config.tgt_vocab_size);
  field("d_model", config.d_model);
  field("num_heads", config.num_heads);
  field("num_encoder_layers", config.num_encoder_layers);
  field("num_decoder_layers", config.num_decoder_layers);
  field("d_ff", config.d_ff);
  field("d_k", config.d_k);
  field("d_v", config.d_v);
  field("dropout", config.dropout);
  field("attention_dropout", config.attention_dropout);
  field("activation_dropout", config.activation_dropout);
  field("norm_first", config.norm_first);
  field("final_norm", config.final_norm);
  field("max_len", config.max_len);
  field("pad_id", config.pad_id);
  field("share_embeddings", config.share_embeddings);
  field("bias", config.bias);
  field("activation", config.activation);
  field("positions", config.positions);
  field("layer_norm_eps", config.layer_norm_eps);
  field("layer_norm_form", config.layer_norm_form);
  field("init", config.init);
}

void TransformerConfig::validate() const {
  using config_json::check_positive, config_json::check_probability;
  check_positive(transformer_operation, "src_vocab_size", src_vocab_size);
  check_positive(transformer_operation, "tgt_vocab_size", tgt_vocab_size);
  check_positive(transformer_operation, "d_model", d_model);
  check_positive(transformer_operation, "num_heads", num_heads);
  check_positive(transformer_operation, "num_encoder_layers", num_encoder_layers);
  check_positive(transformer_operation, "num_decoder_layers", num_decoder_layers);
  check_positive(transformer_operation, "d_ff", d_ff);
  check_positive(transformer_operation, "max_len", max_len);
  check(d_k >= 0 && d_v >= 0, transformer_operation, "d_k and d_v must be positive, or 0 for d_model / num_heads, not ",
        d_k, " and ", d_v);
  check((d_k > 0 && d_v > 0) || d_model % num_heads == 0, transformer_operation, "d_model (", d_model,
        ") is not a multiple of num_heads (", num_heads, "); give d_k and d_v");
  check(pad_id >= -1, transformer_operation, "pad_id must be a token's id, or -1 for none, not ", pad_id);
  check(pad_id < src_vocab_size && pad_id < tgt_vocab_size, transformer_operation, "pad_id (", pad_id,
        ") must be below both vocabulary sizes (", src_vocab_size, " and ", tgt_vocab_size, ")");
  check(!share_embeddings || src_vocab_size == tgt_vocab_size, transformer_operation,
        "share_embeddings needs one vocabulary, but the sizes are ", src_vocab_size, " and ", tgt_vocab_size);
  check(layer_norm_eps > 0 && layer_norm_eps < 1, transformer_operation, "layer_norm_eps must be in (0, 1), not ",
        layer_norm_eps);
  check_probability(transformer_operation, "dropout", dropout);
  check_probability(transformer_operation, "attention_dropout", attention_dropout.value_or(dropout));
  check_probability(transformer_operation, "activation_dropout", activation_dropout.value_or(dropout));
}

LayerOptions TransformerConfig::layer() const {
  return {.d_model = d_model,
          .num_heads = num_heads,
          .d_ff = d_ff,
          .d_k = d_k,
          .d_v = d_v,
          .dropout = dropout,
          .attention_dropout = attention_dropout.value_or(dropout),
          .activation_dropout = activation_dropout.value_or(dropout),
          .norm_first = norm_first,
          .bias = bias,
          .activation = activation,
          .layer_norm_eps = layer_norm_eps,
          .layer_norm_form = layer_norm_form,
          .init = init};
}

i64 TransformerConfig::parameter_count() const {
  const double d = static_cast<double>(d_model), inner = static_cast<double>(d_ff), h = static_cast<double>(num_heads);
  const double head_k = d_k > 0 ? static_cast<double>(d_k) : d / h, head_v = d_v > 0 ? static_cast<double>(d_v) : d / h;
  const double in_rows = h * (2 * head_k + head_v);
  const double norm = bias ? 2 * d : d;
  const double attention = in_rows * d + h * head_v * d + (bias ? in_rows + d : 0);
  const double feed_forward = 2 * d * inner + (bias ? inner + d : 0);
  const double source = static_cast<double>(src_vocab_size), target = static_cast<double>(tgt_vocab_size);
  const double tables = share_embeddings ? source * d : source * d + 2 * target * d;  // with the generator's weight
  const double learned = positions == Positions::learned ? 2 * static_cast<double>(max_len) * d : 0;
  const double encoder = static_cast<double>(num_encoder_layers) * (attention + feed_forward + 2 * norm);
  const double decoder = static_cast<double>(num_decoder_layers) * (2 * attention + feed_forward + 3 * norm);
  return config_json::whole(tables + learned + encoder + decoder + (final_norm ? 2 * norm : 0) + (bias ? target : 0));
}

TransformerConfig base(i64 vocab_size) { return of_paper(vocab_size); }

TransformerConfig big(i64 vocab_size) {
  TransformerConfig config = of_paper(vocab_size);
  config.d_model = 1024, config.d_ff = 4096, config.num_heads = 16, config.dropout = 0.3;
  return config;
}

TransformerConfig tiny(i64 vocab_size) {
  TransformerConfig config = of_paper(vocab_size);
  config.d_model = 128, config.d_ff = 256, config.num_heads = 4, config.dropout = 0.3;
  config.num_encoder_layers = config.num_decoder_layers = 4;
  return config;
}

std::string to_json(const TransformerConfig& config) { return config_json::text_of(config); }

TransformerConfig transformer_config(const std::string& text) {
  return config_json::config_of<TransformerConfig>(text, transformer_operation);
}

}  // namespace orrery::nn
