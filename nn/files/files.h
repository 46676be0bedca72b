// Chapter 9. Models in files: every parameter and buffer under its name, together with the model's configuration.
//
// Names and layout are those of the model's family, PyTorch's or GPT-2's (nn/files/names.h), so a state_dict saved as
// safetensors can be loaded here, and our files can be loaded there. A tied parameter is stored under each of its
// names. A buffer that `visit` calls derived is not stored: whoever builds the model computes it again. The
// configuration is stored in the metadata as JSON text, so a model can be rebuilt from the file alone:
//   nn::save(model, "reverse.safetensors");
//   nn::Transformer same = nn::load<nn::Transformer>("reverse.safetensors");
// Read next: apps/tasks/toy/toy.cpp
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "core/random.h"
#include "nn/module.h"

namespace orrery::nn {

/// The metadata key of a model's configuration.
inline constexpr std::string_view config_key = "config";

/// Writes every parameter, every buffer and `metadata` to `path`, or leaves it as it was. Errors: see
/// `write_safetensors`.
void save(Module& module, const std::string& path, const Metadata& metadata = {});

/// What `save` writes, and the bytes of its elements.
TensorMap tensors_on_disk(Module& module);
u64 saved_bytes(Module& module);

struct LoadOptions {
  std::string prefix{};  ///< only tensors whose names begin so are read: "parameter." in a training's FILE.resume
  /// What is missing, or has another shape, keeps its value, and what the model does not have is left over. So a model
  /// can start from one with another head.
  bool partial = false;
};

/// What `load` did not find, and what it did not use; both empty unless the load was partial. Names are the file's.
struct Loaded {
  Metadata metadata;
  std::vector<std::string> missing;    ///< of the model's, not in the file, or in another shape or dtype
  std::vector<std::string> left_over;  ///< of the file's, not in the model, or in another shape or dtype
};

/// Reads every parameter and buffer, except derived ones, from `path` into the memory it already has. f32 and f64 are
/// converted to the model's dtype. `path` may be a folder or an index of shards (core/files/shards.h), and names may
/// have what DistributedDataParallel and torch.compile put before them (nn/files/names.h). If the family stores weights
/// as [in, out], a file may hold all of them as [out, in] instead, as nanoGPT's do. Errors, which leave the model
/// unchanged: those of `read_safetensors`; names or shapes that are not exactly the model's (the message lists what is
/// missing, unexpected or of another shape), or with `partial`: none that fits; tied parameters, or buffers of the same
/// memory, that differ in the file.
Loaded load(Module& module, const std::string& path, const LoadOptions& options = {});
/// The same from tensors that have already been read, under the file's names. Its errors begin with `operation`, such
/// as "load PATH".
Loaded load(Module& module, TensorMap tensors, const std::string& operation, const LoadOptions& options = {});

/// For a model whose size is given by a file: an error of "load PATH" if its parameters have far more numbers than the
/// file. So no memory is taken for a huge model that a small file describes. Small differences are allowed here, since
/// `load` can say better what is missing.
void check_size(i64 numbers, const std::string& path);
/// The same for tables of f64 that are in memory but in no file. They may take 256 MB more than the file.
void check_tables(double numbers, i64 max_len, const std::string& path);

/// A module that is built from its configuration, such as nn::Transformer.
template <class M>
concept Model = std::derived_from<M, Module> && requires(const M& model, const std::string& json, Rng& rng) {
  M(decltype(M::config)::of_json(json), rng);
  { model.config.parameter_count() } -> std::convertible_to<i64>;
  { to_json(model.config) } -> std::convertible_to<std::string>;
};

/// Error of "load PATH": no such model fits into the file.
template <class Config>
requires std::is_class_v<Config>
void check_size(const Config& config, const std::string& path) {
  check_size(within("load " + path, [&] { return config.parameter_count(); }), path);
  if constexpr (requires { config.table_numbers(); }) check_tables(config.table_numbers(), config.max_len, path);
}

/// The configuration in `metadata`, which was read from `path`. Errors of "load PATH": there is none; those of
/// `Config::of_json`.
const std::string& config_text(const Metadata& metadata, const std::string& path);
template <class Config> Config config_of(const Metadata& metadata, const std::string& path) {
  return within("load " + path, [&] { return Config::of_json(config_text(metadata, path)); });
}

/// Writes a model with its configuration.
template <Model M> void save(M& model, const std::string& path, Metadata metadata = {}) {
  metadata[std::string(config_key)] = to_json(model.config);
  save(static_cast<Module&>(model), path, metadata);
}

/// Builds a model as `config` says, and loads its parameters from `path`. Errors: those of `config.validate()`,
/// `check_size` and `load`.
template <Model M> M load(const std::string& path, const decltype(M::config)& config) {
  config.validate();
  check_size(config, path);
  Rng zeros = Rng::of_zeros();
  M model(config, zeros);
  load(model, path);
  return model;
}
/// The same with the configuration in the file.
template <Model M> M load(const std::string& path) {
  return load<M>(path, config_of<decltype(M::config)>(read_safetensors_metadata(path), path));
}

}  // namespace orrery::nn
