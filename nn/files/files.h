// Chapter 9. Models in files: every parameter and buffer under its name, together with the model's configuration.
//
// Names are PyTorch's, so a state_dict saved as safetensors can be loaded here, and our files can be loaded there. A
// tied parameter is stored under each of its names. A weight that `visit` calls transposed is stored as [in, out]. A
// buffer that `visit` calls derived is not stored: whoever builds the model computes it again. The configuration is
// stored in the metadata as JSON text, so a model can be rebuilt from the file alone:
//   nn::save(model, "reverse.safetensors", {{std::string(nn::config_key), config}});
//   std::string config = read_safetensors_metadata("reverse.safetensors").at(std::string(nn::config_key));
// Read next: apps/tasks/toy/toy.cpp
#pragma once

#include "core/files/safetensors.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

/// The metadata key of a model's configuration.
inline constexpr std::string_view config_key = "config";

/// Writes every parameter, every buffer and `metadata` to `path`, or leaves it as it was. Errors: see
/// `write_safetensors`.
void save(Module& module, const std::string& path, const Metadata& metadata = {});

/// The bytes of the elements that `save` writes.
u64 saved_bytes(Module& module);

/// How a file holds the weights that `visit` calls transposed: as [in, out], or like all others as [out, in].
enum class WeightLayout { as_visited, out_in };

/// Reads every parameter and buffer, except derived ones, from `path` into the memory it already has, and returns the
/// metadata. f32 and f64 are converted to the model's dtype. `path` may be a folder or an index of shards
/// (core/files/shards.h), and names may have what DistributedDataParallel and torch.compile put before them
/// (nn/files/names.h). Errors, which leave the model unchanged: those of `read_safetensors`; names or shapes that are
/// not exactly the model's (the message lists what is missing, unexpected or of another shape); tied parameters, or
/// buffers of the same memory, that differ in the file.
Metadata load(Module& module, const std::string& path);
/// The same from tensors that have already been read. Its errors begin with `operation`, such as "load PATH".
void load(Module& module, const TensorMap& tensors, const std::string& operation,
          WeightLayout layout = WeightLayout::as_visited);

/// Builds a Transformer as `config` says and loads its parameters from `path`. Errors: those of
/// `config.validate()`, `load` and `check_size`.
Transformer load_transformer(const std::string& path, const TransformerConfig& config);
/// The configuration in `metadata`, which was read from `path`. Errors of "load PATH": there is none; those of
/// `transformer_config`.
TransformerConfig config_of(const Metadata& metadata, const std::string& path);

/// For a model whose size is given by a file: an error of "load PATH" if its parameters have far more numbers than the
/// file. So no memory is taken for a huge model that a small file describes. Small differences are allowed here, since
/// `load` can say better what is missing.
void check_size(i64 numbers, const std::string& path);
/// The same for a Transformer. Its two tables of sinusoids are in memory but in no file; they may take 256 MB more than
/// the file.
void check_size(const TransformerConfig& config, const std::string& path);

}  // namespace orrery::nn
