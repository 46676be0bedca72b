// Chapter 9. Models in files: every parameter under its name, and the model's configuration beside them.
//
// Names are PyTorch's, so that a state_dict saved as safetensors loads here, and ours loads there. A tied parameter
// stands in the file under each of its names; what `visit` calls transposed stands in the file as [in, out]. The
// configuration is one piece of metadata, JSON text, so that a model can be rebuilt from the file alone:
//   nn::save(model, "reverse.safetensors", {{std::string(nn::config_key), config}});
//   std::string config = read_safetensors_metadata("reverse.safetensors").at(std::string(nn::config_key));
// Read next: apps/toy/toy.cpp
#pragma once

#include "core/files/safetensors.h"
#include "nn/models/transformer.h"

namespace orrery::nn {

/// The metadata key under which a model's configuration stands.
inline constexpr std::string_view config_key = "config";

/// Writes every parameter and `metadata` to `path`, or leaves it as it was. Errors: see `write_safetensors`.
void save(Module& module, const std::string& path, const Metadata& metadata = {});

/// Reads every parameter from `path`, into the memory it has, and returns the metadata; f32 and f64 are converted to
/// what the model holds. Errors, with the model unchanged: those of `read_safetensors`; names or shapes that are not
/// exactly the model's, listing what is missing, unexpected or of another shape; tied parameters that differ in the
/// file.
Metadata load(Module& module, const std::string& path);
/// The same from tensors that have been read; `operation`, such as "load PATH", begins its errors.
void load(Module& module, const TensorMap& tensors, const std::string& operation);

/// The Transformer of `path`, built as `config` says. Errors, besides those of `load`: `check_size`'s.
Transformer load_transformer(const std::string& path, const TransformerConfig& config);

/// For a model that is built as a file says: an error of "load PATH" if its parameters and tables are many times as
/// many numbers as the file holds. A file that does not fit exactly is better told what is missing; one that describes
/// a huge model must not take the memory for it.
void check_size(i64 numbers, const std::string& path);

}  // namespace orrery::nn
