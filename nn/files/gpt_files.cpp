// Chapter 9. GPTs in files: files of other programs, with their names mapped to those of the model.
//
// Serves: nn/files/files.h
#include "nn/files/gpt_files.h"

#include <filesystem>

#include "core/files/file.h"
#include "core/files/json.h"
#include "core/tensor_ops.h"
#include "nn/files/files.h"

namespace orrery::nn {
namespace {

constexpr std::string_view prefix = "transformer.", head = "lm_head.weight", table = "wte.weight";

// "h.3.attn.bias", "h.3.attn.masked_bias"
bool is_mask(std::string_view name) {
  return name.starts_with("h.") && (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}

std::string without_prefix(const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// The tensors of the file under the names of the model, except masks. These may have any dtype and are large, so they
// are not even read.
TensorFile read_gpt(const std::string& path, const std::string& operation) {
  TensorFile file = read_safetensors(path, [](const std::string& name) { return !is_mask(without_prefix(name)); });
  TensorMap plain;
  for (const auto& [full_name, tensor] : file.tensors) {
    const std::string name = without_prefix(full_name);
    check(plain.emplace(name, tensor).second, operation, name, " is in the file twice, with and without the prefix ",
          prefix);
  }
  file.tensors = std::move(plain);
  return file;
}

// The sizes of a model without a configuration, except the number of heads. `load` reports whatever else is missing.
GptConfig config_of_shapes(const TensorMap& tensors, const std::string& operation) {
  const auto shape = [&](const std::string& name) {
    const auto found = tensors.find(name);
    check(found != tensors.end() && found->second.rank() == 2, operation,
          "holds no GPT: it has no configuration and no ", name, " of two axes");
    return found->second.shape();
  };
  GptConfig config;
  config.vocab_size = shape(std::string(table))[0];
  config.layer.d_model = shape(std::string(table))[1];
  config.max_len = shape("wpe.weight")[0];
  config.layer.d_ff = shape("h.0.mlp.c_fc.weight")[1];
  config.num_layers = 0;
  while (tensors.contains("h." + std::to_string(config.num_layers) + ".ln_1.weight")) ++config.num_layers;
  config.layer.bias = tensors.contains("h.0.ln_1.bias");
  const auto copy = tensors.find(std::string(head));
  config.tied = copy == tensors.end() || same_bits(copy->second, tensors.at(std::string(table)));
  return config;
}

// A guess, since no shape shows the number of heads.
GptConfig with_guessed_heads(GptConfig config, const std::string& operation) {
  constexpr i64 d_head = 64;
  check(config.layer.d_model % d_head == 0, operation, "has no configuration, and d_model (", config.layer.d_model,
        ") is not a multiple of ", d_head, ", GPT-2's size of a head");
  config.layer.num_heads = config.layer.d_model / d_head;
  return config;
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

// The configuration of a file that has none in its metadata.
GptConfig config_of_published(const TensorMap& tensors, const std::string& path, const std::string& operation) {
  const GptConfig shapes = config_of_shapes(tensors, operation);
  const std::filesystem::path beside = std::filesystem::path(path).replace_filename("config.json");
  std::error_code unreadable;  // a folder that cannot be read counts as one without the file
  return std::filesystem::exists(beside, unreadable) ? config_of_description(beside.string(), shapes, operation)
                                                     : with_guessed_heads(shapes, operation);
}

// A tied model has one matrix for both, so the copy is dropped. Error: the two differ.
void drop_copy_of_table(TensorMap& tensors, const std::string& operation) {
  const auto copy = tensors.find(std::string(head)), original = tensors.find(std::string(table));
  if (copy == tensors.end() || original == tensors.end()) return;
  check(same_bits(copy->second, original->second), operation, head, " and ", table,
        " are one parameter in the model, and differ in the file");
  tensors.erase(copy);
}

Gpt built(const GptConfig& config, TensorMap tensors, const std::string& path, const std::string& operation) {
  within(operation, [&] { config.validate(); });  // before counting: with 0 heads the count is not a number
  check_size(config.parameter_count(), path);
  Rng zeros = Rng::of_zeros();
  Gpt model(config, zeros);
  if (config.tied) drop_copy_of_table(tensors, operation);
  load(model, tensors, operation);
  return model;
}

}  // namespace

void save_gpt(Gpt& model, const std::string& path, Metadata metadata) {
  metadata[std::string(config_key)] = to_json(model.config);
  save(model, path, metadata);
}

Gpt load_gpt(const std::string& path) {
  const std::string operation = "load " + path;
  TensorFile file = read_gpt(path, operation);
  const auto config = file.metadata.find(std::string(config_key));
  const GptConfig described = config == file.metadata.end()
                                  ? config_of_published(file.tensors, path, operation)
                                  : within(operation, [&] { return gpt_config(config->second); });
  return built(described, std::move(file.tensors), path, operation);
}

Gpt load_gpt(const std::string& path, const GptConfig& config) {
  const std::string operation = "load " + path;
  return built(config, read_gpt(path, operation).tensors, path, operation);
}

}  // namespace orrery::nn
