// Chapter 9. Names on disk: what other programs call a model's tensors in their files.
//
// A family of models has names of its own (`Module::family`). A table in names.cpp says what they stand for: one row
// for each pattern of names, with the layout of the weights.
//   layers.0.linear1.weight   is   h.0.mlp.c_fc.weight        in GPT-2's files, stored as [in, out]
//   self_attn.in_proj.weight  is   self_attn.in_proj_weight   in PyTorch's
// Programs put something before or between these names, too:
//   module.wte.weight                  PyTorch's DistributedDataParallel
//   _orig_mod.wte.weight               torch.compile, also around a part: wte._orig_mod.weight
//   transformer.wte.weight             a family's own prefix, here that of Hugging Face's GPT2LMHeadModel
//   embeddings.LayerNorm.gamma         the weight of a norm, and .beta its bias, in files that once were TensorFlow's
//   {"lm_head.weight": "wte.weight"}   metadata of safetensors.torch.save_model: a tied weight is stored once, and the
//                                      metadata have its other name
// Wrappers can stand in each other, in any order. A name that the model itself has is never changed.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/safetensors.h"
#include "nn/module.h"

namespace orrery::nn {

/// How a file holds one parameter or buffer.
struct NameOnDisk {
  std::vector<std::string> names;  ///< more than one: each holds an equal part of the rows
  bool transposed = false;         ///< a matrix is stored as [in, out]
};

/// A row of a family's table. In a pattern, `*` stands for one part of a name, `**` for all the others: it may hold
/// dots. The n-th `*` of both patterns is the same text.
struct NamePattern {
  enum Mark {
    none,
    transposed,  ///< what is called `weight` is stored as [in, out]
    ignored,     ///< nothing of ours has this name: it is not read
    copy,        ///< another name of what `in_memory` is, which files may have besides the first one
    head         ///< files with it have the family's prefix before all other names (`nn::save` writes it, too)
  };
  std::string_view in_memory;
  std::vector<std::string_view> on_disk;  ///< more than one: joined in memory, in this order
  Mark mark = none;
};

/// A family: the first row that fits a name says what it is called on disk. A name that fits none is the same there.
struct Family {
  std::string_view name, prefix;  ///< `prefix` may stand before all names of a file
  std::vector<NamePattern> patterns;

  NameOnDisk on_disk(const std::string& in_memory) const;
  /// Whether a row has this name on disk.
  bool knows(const std::string& on_disk) const;
  /// Whether a row says that a tensor of this name is not read, or that it is of a head.
  bool ignores(const std::string& on_disk) const { return marks(on_disk, NamePattern::ignored); }
  bool marks(const std::string& on_disk, NamePattern::Mark mark) const;
};
/// Error: there is no such family.
const Family& family(std::string_view name);

/// The parameters of a module, each once, as files call them; those that files do not hold as one tensor have the
/// module's own names. Files of trainings use these names.
Parameters parameters_on_disk(Module& module);
/// The same for buffers.
std::vector<Module::NamedBuffer> buffers_on_disk(Module& module);

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
