// Chapter 9. GPTs in files: files of other programs, with their names mapped to those of the model.
#include "nn/files/gpt_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <typeinfo>

#include "core/files/file.h"
#include "core/files/json.h"
#include "core/files/shards.h"
#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "nn/files/names.h"
#include "nn/models/config_json.h"

namespace orrery::nn {
namespace {

constexpr std::string_view published_operation = "gpt config";
constexpr std::string_view head = "lm_head.weight", table = "wte.weight";
constexpr i64 most_columns = 1 << 20;  // of an embedding: far more than any model has

const Family& gpt2() { return family("gpt2"); }

NamesOnDisk gpt_names() {
  return {.known = [](const std::string& name) { return gpt2().knows(name); },
          .prefix = gpt2().prefix,
          .ignored = [](const std::string& name) { return gpt2().ignores(name); }};
}

using Shapes = std::map<std::string, Shape>;

Shapes shapes_of(const TensorMap& tensors) {
  Shapes shapes;
  for (const auto& [name, tensor] : tensors)
    if (tensor.defined()) shapes.emplace(name, tensor.shape());
  return shapes;
}

// Whether the weights of layers are stored as [out, in], as nanoGPT's are.
bool is_out_in(const Shapes& shapes) {
  const auto c_attn = shapes.find("h.0.attn.c_attn.weight"), embeddings = shapes.find(std::string(table));
  const bool is_known = c_attn != shapes.end() && embeddings != shapes.end() && embeddings->second.rank() == 2;
  if (!is_known) return false;
  const i64 d_model = embeddings->second[1];
  return d_model <= most_columns && c_attn->second == Shape{3 * d_model, d_model};
}

// The number of heads of a published GPT, all of which have GPT-2's tokens; 0 for a model of other sizes.
i64 heads_of_published(const GptConfig& config) {
  constexpr i64 gpt2_tokens = 50257, padded_by_nanogpt = 50304;
  if (config.vocab_size != gpt2_tokens && config.vocab_size != padded_by_nanogpt) return 0;
  for (const std::string& name : gpt_preset_names()) {
    const GptConfig p = gpt_preset(name);
    if (p.vocab_size == gpt2_tokens && p.layer.d_model == config.layer.d_model && p.layer.d_ff == config.layer.d_ff &&
        p.num_layers == config.num_layers && p.max_len == config.max_len)
      return p.layer.num_heads;
  }
  return 0;
}

// The sizes of a model without a configuration; tied, unless it has a head. `load` reports whatever else is missing.
GptConfig config_of_shapes(const Shapes& shapes, const std::string& operation) {
  const auto shape = [&](const std::string& name) {
    const auto found = shapes.find(name);
    check(found != shapes.end() && found->second.rank() == 2, operation,
          "holds no GPT: it has no configuration and no ", name, " of two axes");
    return found->second;
  };
  GptConfig config;
  config.vocab_size = shape(std::string(table))[0];
  config.layer.d_model = shape(std::string(table))[1];
  config.max_len = shape("wpe.weight")[0];
  config.layer.d_ff = shape("h.0.mlp.c_fc.weight")[is_out_in(shapes) ? 0 : 1];
  config.num_layers = 0;
  while (shapes.contains("h." + std::to_string(config.num_layers) + ".ln_1.weight")) ++config.num_layers;
  config.layer.bias = shapes.contains("h.0.ln_1.bias");
  config.tied = !shapes.contains(std::string(head));
  config.layer.num_heads = 0;  // which no shape shows
  return config;
}

// "1, 2, 4, 8": the numbers of heads that divide d_model, those with heads of a usual size if there are many.
std::string possible_heads(i64 d_model) {
  constexpr i64 smallest_head = 16, largest_head = 256, few = 64;
  std::string list;
  for (i64 heads = 1; heads <= d_model; ++heads) {
    const i64 columns = d_model / heads;
    if (columns < smallest_head && d_model > few) break;
    if (d_model % heads == 0 && (columns <= largest_head || d_model <= few))
      list += (list.empty() ? "" : ", ") + std::to_string(heads);
  }
  return list.empty() ? "1" : list;
}

// Error: `num_heads` is neither known nor given, or given otherwise than known.
void set_heads(GptConfig& config, i64 num_heads, const std::string& operation) {
  i64& known = config.layer.num_heads;
  check(known == 0 || num_heads == 0 || known == num_heads, operation, "has ", known, " heads, not ", num_heads);
  if (num_heads != 0) known = num_heads;
  const i64 d_model = config.layer.d_model;
  if (known != 0 || d_model <= 0) return;  // `validate` says what is wrong
  constexpr i64 usual = 64;
  check(d_model <= most_columns, operation, "has d_model ", d_model, ", which no GPT has");
  const std::string hint = d_model % usual == 0
                               ? "; GPT-2's heads of 64 columns would be " + std::to_string(d_model / usual)
                               : std::string();
  fail(operation, "does not say how many heads its attention has, on which its outputs depend: give --heads (in C++ ",
       "num_heads), or put the model's config.json beside it. With d_model ", d_model, " there can be ",
       possible_heads(d_model), hint);
}

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

// The configuration in `described_in`, a config.json. It is an error if it contradicts the shapes.
GptConfig config_of_description(const std::string& described_in, const GptConfig& shapes,
                                const std::string& operation) {
  const InputFile file(described_in);
  check(file.size() <= most_json_bytes, operation, described_in, " has ", file.size(),
        " bytes: it is not a configuration");
  GptConfig config = within(operation, [&] { return published_gpt_config(file.text(), described_in); });
  const auto check_same = [&](const char* field, i64 described, const char* tensors, i64 numbers_in_file) {
    check(described == numbers_in_file, operation, described_in, " says ", field, " is ", described, ", but ", tensors,
          " ", numbers_in_file);
  };
  check_same("vocab_size", config.vocab_size, "the rows of wte.weight are", shapes.vocab_size);
  check_same("n_embd", config.layer.d_model, "the columns of wte.weight are", shapes.layer.d_model);
  check_same("n_positions", config.max_len, "the rows of wpe.weight are", shapes.max_len);
  check_same("n_inner", config.layer.d_ff, "the columns of h.0.mlp.c_fc.weight are", shapes.layer.d_ff);
  check_same("n_layer", config.num_layers, "the layers with a tensor ln_1.weight are", shapes.num_layers);
  config.layer.bias = shapes.layer.bias;
  return config;
}

// The configuration of a file that has none in its metadata. Shapes only suggest a number of heads: `num_heads`, if it
// is not 0, is believed instead.
GptConfig config_of_published(const TensorMap& tensors, i64 num_heads, const std::string& path,
                              const std::string& operation) {
  const Shapes shapes = shapes_of(tensors);
  GptConfig config = config_of_shapes(shapes, operation);
  const std::filesystem::path beside = std::filesystem::path(path).replace_filename("config.json");
  std::error_code unreadable;  // a folder that cannot be read counts as one without the file
  if (std::filesystem::exists(beside, unreadable)) return config_of_description(beside.string(), config, operation);
  config.tied = config.tied || same_bits(tensors.at(std::string(head)), tensors.at(std::string(table)));
  config.layer.num_heads = num_heads != 0 ? num_heads : heads_of_published(config);
  if (config.tied && is_out_in(shapes)) config.layer.activation = Activation::gelu;
  return config;
}

Gpt built(const GptConfig& config, TensorMap tensors, const std::string& path, const std::string& operation) {
  within(operation, [&] { config.validate(); });
  check_size(config, path);
  Rng zeros = Rng::of_zeros();
  Gpt model(config, zeros);
  load(model, std::move(tensors), operation);
  return model;
}

// Errors: what the model computes is not all in the parameters that a GPT-2 has.
void check_is_gpt2(Gpt& model, const std::string& operation) {
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const auto* const attention = model.layers[i].self_attn.get_if<MultiHeadAttention>();
    const i64 heads = model.config.layer.num_heads, columns = model.config.layer.d_model / heads;
    const bool is_plain = attention && typeid(*attention) == typeid(MultiHeadAttention) && !attention->query_key_map &&
                          !attention->score_bias && attention->own_mask.allows_all() && attention->num_heads == heads &&
                          attention->d_k == columns && attention->d_v == columns;
    check(is_plain, operation, "the attention of h.", i, " is not GPT-2's: it has another module, number of heads or ",
          "mask, positions, or a bias on its scores, which Hugging Face's GPT2LMHeadModel would not compute");
  }
  for (const Module::NamedBuffer& buffer : buffers_on_disk(model))
    check(buffer.derived, operation, "the buffer ", buffer.name, " has no place in a GPT-2");
}

}  // namespace

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
    check(!has, published_operation, "GPT-2 has no ", what,
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

void save_published_gpt(Gpt& model, const std::string& path, Metadata metadata) {
  const std::string operation = "save " + path;
  within(operation, [&] { published_json(model.config); });  // says what such a file cannot hold
  check_is_gpt2(model, operation);
  GptConfig config = model.config;
  config.layer.bias = true;
  Rng zeros = Rng::of_zeros();
  Gpt published(config, zeros);
  TensorMap values = tensors_on_disk(model), tensors;
  for (const auto& [name, zero] : tensors_on_disk(published)) {
    const auto value = values.extract(name);
    check(value || name.ends_with(".bias"), operation, "the model has no ", name);
    tensors[(name == head ? "" : std::string(gpt2().prefix)) + name] = value ? value.mapped() : zero;
  }
  check(values.empty(), operation, values.empty() ? "" : values.begin()->first, " has no place in a GPT-2");
  metadata[std::string(config_key)] = to_json(config);
  metadata["format"] = "pt";  // without it, transformers refuses the file
  write_safetensors(path, tensors, metadata);
}

Gpt load_gpt(const std::string& given, i64 num_heads) {
  const std::string path = model_file(given), operation = "load " + path;
  TensorFile file = read_named(path, gpt_names());
  const auto described = file.metadata.find(std::string(config_key));
  GptConfig config = described == file.metadata.end()
                         ? config_of_published(file.tensors, num_heads, path, operation)
                         : within(operation, [&] { return GptConfig::of_json(described->second); });
  set_heads(config, num_heads, operation);
  return built(config, std::move(file.tensors), path, operation);
}

GptConfig gpt_config(const std::string& given, i64 num_heads) {
  const std::string path = model_file(given), operation = "load " + path;
  const Metadata metadata = read_safetensors_metadata(path);
  if (metadata.contains(std::string(config_key))) return config_of<GptConfig>(metadata, path);
  const std::filesystem::path beside = std::filesystem::path(path).replace_filename("config.json");
  Shapes shapes;
  for (const TensorSummary& tensor : summarise_safetensors(path, false).tensors)
    shapes.emplace(name_in_model(tensor.entry.name, gpt_names()), tensor.entry.shape);
  std::error_code unreadable;
  if (!shapes.contains(std::string(table)) || !std::filesystem::exists(beside, unreadable))
    return load_gpt(given, num_heads).config;  // a name that metadata change; a head that may be a copy of the table
  const GptConfig config = config_of_description(beside.string(), config_of_shapes(shapes, operation), operation);
  check_size(config, path);
  return config;
}

std::optional<GptConfig> gpt_of_shapes(const FileSummary& file) {
  if (file.metadata.contains(std::string(config_key))) return std::nullopt;
  Shapes shapes;
  std::map<std::string, std::string> checksums;
  for (const TensorSummary& tensor : file.tensors) {
    const std::string name = name_in_model(tensor.entry.name, gpt_names());
    shapes.emplace(name, tensor.entry.shape);
    checksums[name] = tensor.checksum;
  }
  try {
    GptConfig config = config_of_shapes(shapes, "inspect");
    config.layer.num_heads = heads_of_published(config);
    config.tied = config.tied || checksums[std::string(head)] == checksums[std::string(table)];
    return config;
  } catch (const Error&) { return std::nullopt; }
}

}  // namespace orrery::nn
