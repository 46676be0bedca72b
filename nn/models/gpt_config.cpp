// Chapter 7. GptConfig: checking it, its presets, its number of parameters, and its fields by name.
#include "nn/models/gpt_config.h"

#include <span>

#include "nn/models/config_json.h"
#include "nn/models/encoder.h"

namespace orrery::nn {
namespace {

constexpr std::string_view gpt_operation = "gpt config";

struct Preset {
  std::string_view name;
  i64 vocab_size, d_model, num_heads, num_layers, max_len;
};

constexpr i64 gpt2_tokens = 50257;
constexpr std::array<Preset, 7> presets{{
    {"nanogpt", 65, 128, 4, 4, 64},
    {"distilgpt2", gpt2_tokens, 768, 12, 6, 1024},
    {"gpt2", gpt2_tokens, 768, 12, 12, 1024},
    {"gpt2-medium", gpt2_tokens, 1024, 16, 24, 1024},
    {"gpt2-large", gpt2_tokens, 1280, 20, 36, 1024},
    {"gpt2-xl", gpt2_tokens, 1600, 25, 48, 1024},
    {"gpt3", gpt2_tokens, 12288, 96, 96, 2048},
}};

// The names of activations in Hugging Face's transformers (activations.py), and back.
std::string_view published_name(Activation activation) {
  if (activation == Activation::gelu_tanh) return "gelu_new";
  return activation == Activation::gelu ? "gelu" : "relu";
}
Activation published_activation(const Json& name, const std::string& operation) {
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "gelu") return Activation::gelu;
  check(name == "relu", operation, "activation_function cannot be ", Shown{name});
  return Activation::relu;
}

}  // namespace

// Calls field(name, value) for every field (nn/models/config_json.h).
template <class Field>
static void for_each_field(GptConfig& config, Field&& field) {
  field("vocab_size", config.vocab_size);
  for_each_field(config.layer, field);
  field("num_layers", config.num_layers);
  field("max_len", config.max_len);
  field("tied", config.tied);
  field("rotary", config.rotary);
  field("query_key_norm", config.query_key_norm);
}

void GptConfig::validate() const {
  using config_json::check_positive;
  check_positive(gpt_operation, "vocab_size", vocab_size);
  check_positive(gpt_operation, "num_layers", num_layers);
  check_positive(gpt_operation, "max_len", max_len);
  layer.validate(gpt_operation);
  check(layer.init == LayerOptions{}.init || layer.init == Init::normal_002, gpt_operation,
        "init cannot be chosen: a GPT's weights start from N(0, 0.02^2)");
  check(!rotary || layer.head_size() % 2 == 0, gpt_operation, "rotary needs heads of an even size, not of ",
        layer.head_size());
}

LayerOptions GptConfig::layers() const {
  LayerOptions all = layer;
  all.attention_dropout = layer.attention_dropout.value_or(layer.dropout);
  all.activation_dropout = layer.activation_dropout.value_or(0);
  all.activation = layer.activation.value_or(Activation::gelu_tanh);
  all.norm_first = true;
  all.init = Init::normal_002;
  return all;
}

i64 GptConfig::parameter_count() const {
  const LayerOptions options = layers();
  const double rows = (tied ? 1 : 2) * static_cast<double>(vocab_size) + static_cast<double>(max_len);
  return config_json::whole(rows * static_cast<double>(layer.d_model) +
                            static_cast<double>(num_layers) *
                                (EncoderLayer::parameter_count(options) + (query_key_norm ? 1 : 0)) +
                            LayerNorm::parameter_count(layer.d_model, options.norm()));
}

bool operator==(const GptConfig& a, const GptConfig& b) { return to_json(a) == to_json(b); }

GptConfig gpt_preset(const std::string& name) {
  for (const Preset& p : presets) {
    if (p.name != name) continue;
    GptConfig config{.vocab_size = p.vocab_size,
                     .layer = {.d_model = p.d_model, .num_heads = p.num_heads, .d_ff = 4 * p.d_model},
                     .num_layers = p.num_layers,
                     .max_len = p.max_len};
    LayerOptions& layer = config.layer;
    if (name == "nanogpt") {
      layer.dropout = 0;
      layer.bias = false;
      layer.activation = Activation::gelu;
    }
    return config;
  }
  std::string known;
  for (const std::string& other : gpt_preset_names()) known += (known.empty() ? "" : ", ") + other;
  fail(gpt_operation, "no preset is called '", name, "'; there are: ", known);
}

std::vector<std::string> gpt_preset_names() {
  std::vector<std::string> names;
  for (const Preset& p : presets) names.emplace_back(p.name);
  return names;
}

std::string to_json(const GptConfig& config) {
  GptConfig complete = config;
  complete.layer = config.layers();
  return config_json::text_of(complete);
}

GptConfig gpt_config(const std::string& json) { return config_json::config_of<GptConfig>(json, gpt_operation); }

GptConfig published_gpt_config(const std::string& json, const std::string& operation) {
  const Json published = parse_json_object(json, operation);
  const auto check_usual = [&](const char* field, const Json& usual) {
    const Json& value = published.contains(field) ? published.at(field) : usual;
    check(value == usual, operation, field, " must be ", Shown{usual}, ", not ", Shown{value});
  };
  check_usual("model_type", "gpt2");
  check_usual("scale_attn_weights", true);
  check_usual("scale_attn_by_inverse_layer_idx", false);
  for (const char* field : {"n_head", "n_layer", "n_embd", "n_positions", "vocab_size"})
    check(published.contains(field), operation, "has no field \"", field, "\"");
  GptConfig config;
  config_json::Reader read(operation, published);
  read("n_head", config.layer.num_heads);
  read("n_layer", config.num_layers);
  read("n_embd", config.layer.d_model);
  read("n_positions", config.max_len);
  read("vocab_size", config.vocab_size);
  read("layer_norm_epsilon", config.layer.layer_norm_eps);
  read("tie_word_embeddings", config.tied);
  config.layer.d_ff = 4 * config.layer.d_model;
  if (!published.value("n_inner", Json(nullptr)).is_null()) read("n_inner", config.layer.d_ff);
  config.layer.activation = published_activation(published.value("activation_function", Json("gelu_new")), operation);
  within(operation, [&] { config.validate(); });
  return config;
}

std::string published_json(const GptConfig& config) {
  config.validate();
  const LayerOptions layer = config.layers();
  const i64 d_head = layer.d_model / layer.num_heads;
  const auto refuse = [](bool has, const char* what) {
    check(!has, gpt_operation, "GPT-2 has no ", what,
          ", so Hugging Face's GPT2LMHeadModel would compute something else");
  };
  refuse(config.rotary, "rotary positions");
  refuse(config.query_key_norm, "normalised queries and keys");
  refuse((layer.d_k != 0 && layer.d_k != d_head) || (layer.d_v != 0 && layer.d_v != d_head),
         "heads of another size than d_model / num_heads");
  refuse(layer.layer_norm_form != LayerNormForm::root_of_variance_plus_eps, "other form of layer norm than PyTorch's");
  const Json json{{"architectures", {"GPT2LMHeadModel"}},
                  {"model_type", "gpt2"},
                  {"vocab_size", config.vocab_size},
                  {"n_positions", config.max_len},
                  {"n_embd", layer.d_model},
                  {"n_layer", config.num_layers},
                  {"n_head", layer.num_heads},
                  {"n_inner", layer.d_ff},
                  {"activation_function", published_name(*layer.activation)},
                  {"resid_pdrop", layer.dropout},
                  {"embd_pdrop", layer.dropout},
                  {"attn_pdrop", *layer.attention_dropout},
                  {"layer_norm_epsilon", layer.layer_norm_eps},
                  {"tie_word_embeddings", config.tied},
                  {"bos_token_id", nullptr},  // GPT-2's own would be beyond a smaller vocabulary
                  {"eos_token_id", nullptr}};
  return json_text(json, 2) + "\n";
}

bool is_gpt_config(const std::string& json) {
  // A Transformer has num_encoder_layers instead.
  return parse_json_object(json, gpt_operation).contains("num_layers");
}

}  // namespace orrery::nn
