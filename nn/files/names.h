// Chapter 9. Names on disk: what other programs call a model's tensors in their files.
//
//   module.wte.weight                  PyTorch's DistributedDataParallel
//   _orig_mod.wte.weight               torch.compile, also around a part: wte._orig_mod.weight
//   transformer.wte.weight             a family's own prefix, here that of Hugging Face's GPT2LMHeadModel
//   {"lm_head.weight": "wte.weight"}   metadata of safetensors.torch.save_model: a tied weight is stored once, and the
//                                      metadata have its other name
// Wrappers can stand in each other, in any order. A name that the model itself has is never changed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/files/safetensors.h"

namespace orrery::nn {

/// How a model's names are found in a file.
struct NamesOnDisk {
  std::function<bool(const std::string& name)> known;         ///< whether the model may have a tensor of this name
  std::string_view prefix = "";                               ///< may stand before all names
  std::function<bool(const std::string& name)> ignored = {};  ///< known, but not to be read
};

/// The model's name for what a file calls `name`, without prefixes; `name` itself if no part of it is known.
std::string name_in_model(const std::string& name, const NamesOnDisk& names);

/// Reads `path` as `read_safetensors` does, under the names of the model. A tensor that is not known is there, too,
/// under the file's name, but undefined: it is not read, and may have any dtype. Tied weights that are stored once are
/// there under both names. Errors: those of `read_safetensors`; of "load PATH": a tensor is there twice; the file is
/// one shard of several.
TensorFile read_named(const std::string& path, const NamesOnDisk& names);

}  // namespace orrery::nn
