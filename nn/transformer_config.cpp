// Chapter 7. TransformerConfig: its rules, its presets, and its fields by name.
//
// Read next: nn/transformer.h
#include "nn/transformer_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace orrery::nn {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view operation = "transformer config";

// How the values of enumerations are written, in their order.
constexpr std::array<std::string_view, 2> names(Activation) { return {"relu", "gelu"}; }
constexpr std::array<std::string_view, 2> names(Positions) { return {"sinusoidal", "learned"}; }
constexpr std::array<std::string_view, 3> names(Init) { return {"xavier", "pytorch_linear", "normal_001"}; }
constexpr std::array<std::string_view, 3> names(LayerNormForm) {
  return {"root_of_variance_plus_eps", "std_plus_eps", "unbiased_std_plus_eps"};
}

// Calls field(name, value) for every field: reading, writing and the list of known names are made of it.
template <class Config, class Field>
void for_each_field(Config& config, const Field& field) {
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

template <class T>
Json written(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return names(value)[static_cast<size_t>(value)];
  else
    return value;
}
Json written(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

void read(const Json& json, std::string_view name, bool& value) {
  check(json.is_boolean(), operation, name, " must be true or false, not ", json.dump());
  value = json.get<bool>();
}
template <std::integral T>
void read(const Json& json, std::string_view name, T& value) {
  check(json.is_number_integer() && json.get<double>() >= -1 && json.get<double>() <= std::numeric_limits<i32>::max(),
        operation, name, " must be a whole number below 2^31, not ", json.dump());
  value = json.get<T>();
}
void read(const Json& json, std::string_view name, double& value) {
  check(json.is_number(), operation, name, " must be a number, not ", json.dump());
  value = json.get<double>();
}
void read(const Json& json, std::string_view name, std::optional<double>& value) {
  value.reset();
  if (!json.is_null()) read(json, name, value.emplace());
}
template <class T>
requires std::is_enum_v<T>
void read(const Json& json, std::string_view name, T& value) {
  const auto all = names(value);
  const auto found = std::find(all.begin(), all.end(), json.is_string() ? json.get<std::string>() : "");
  check(found != all.end(), operation, name, " cannot be ", json.dump());
  value = static_cast<T>(found - all.begin());
}

void check_probability(std::string_view name, double p) {
  check(p >= 0 && p < 1, operation, name, " must be in [0, 1), not ", p);
}

TransformerConfig of_paper(i64 vocab_size) {
  return {.src_vocab_size = vocab_size,
          .tgt_vocab_size = vocab_size,
          .attention_dropout = 0,
          .activation_dropout = 0,
          .share_embeddings = true};
}

}  // namespace

void TransformerConfig::validate() const {
  const auto positive = [](std::string_view name, i64 value) {
    check(value > 0, operation, name, " must be positive, not ", value);
  };
  positive("src_vocab_size", src_vocab_size);
  positive("tgt_vocab_size", tgt_vocab_size);
  positive("d_model", d_model);
  positive("num_heads", num_heads);
  positive("num_encoder_layers", num_encoder_layers);
  positive("num_decoder_layers", num_decoder_layers);
  positive("d_ff", d_ff);
  positive("max_len", max_len);
  check(d_k >= 0 && d_v >= 0, operation, "d_k and d_v must be positive, or 0 for d_model / num_heads, not ", d_k,
        " and ", d_v);
  check((d_k > 0 && d_v > 0) || d_model % num_heads == 0, operation, "d_model (", d_model,
        ") is not a multiple of num_heads (", num_heads, "); give d_k and d_v");
  check(pad_id >= -1, operation, "pad_id must be a token's id, or -1 for none, not ", pad_id);
  check(pad_id < src_vocab_size && pad_id < tgt_vocab_size, operation, "pad_id (", pad_id,
        ") must be below both vocabulary sizes (", src_vocab_size, " and ", tgt_vocab_size, ")");
  check(!share_embeddings || src_vocab_size == tgt_vocab_size, operation,
        "share_embeddings needs one vocabulary, but the sizes are ", src_vocab_size, " and ", tgt_vocab_size);
  check(layer_norm_eps > 0 && layer_norm_eps < 1, operation, "layer_norm_eps must be in (0, 1), not ", layer_norm_eps);
  check_probability("dropout", dropout);
  check_probability("attention_dropout", attention_dropout.value_or(dropout));
  check_probability("activation_dropout", activation_dropout.value_or(dropout));
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

std::string to_json(const TransformerConfig& config) {
  Json json;
  for_each_field(config, [&](const char* name, const auto& value) { json[name] = written(value); });
  return json.dump();
}

TransformerConfig transformer_config(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(json.is_object(), operation, "is not a JSON object");
  TransformerConfig config;
  size_t known = 0;
  for_each_field(config, [&](const char* name, auto& value) {
    if (!json.contains(name)) return;
    read(json.at(name), name, value);
    ++known;
  });
  if (known < json.size()) {
    const TransformerConfig fresh;
    for (const auto& [name, value] : json.items()) {
      bool is_field = false;
      for_each_field(fresh, [&, &key = name](const char* field, const auto&) { is_field |= key == field; });
      check(is_field, operation, "there is no field \"", name, "\"");
    }
  }
  config.validate();
  return config;
}

}  // namespace orrery::nn
