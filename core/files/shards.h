// Chapter 9. The files of one model: a single one, or shards with an index that says which tensors each of them holds.
//
// Hugging Face's programs cut a large model into shards beside an index, model.safetensors.index.json:
//   {"metadata": {"total_size": 28}, "weight_map": {"wte.weight": "model-00001-of-00002.safetensors", ...}}
// An index may come from anybody. So a shard is a file beside it, never a path that leads elsewhere.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace orrery {

/// One file, and the tensors that an index expects in it; without an index any.
struct Shard {
  std::string path;
  std::optional<std::set<std::string>> names;
};

/// The files that a path stands for, and the texts among an index's metadata.
struct ModelFiles {
  std::vector<Shard> shards;
  std::map<std::string, std::string> metadata;
};

/// The file to begin with: `path` itself or, of a folder, its model.safetensors, its index of shards, or PyTorch's
/// pytorch_model.bin; the first of these if there is none.
std::string model_file(const std::string& path);

/// The files that `path` stands for: a file, a folder (`model_file`), or an index, whose name ends with ".index.json".
/// Errors of "read INDEX": it is not JSON, has no weight_map, is larger than the limits of `parse_json_object`, names a
/// tensor twice, names something else than a file beside itself, or a file that is missing.
ModelFiles model_files(const std::string& path);
/// The bytes of all of them.
u64 bytes_of_model(const std::string& path);

/// Whether the name of a file says that it is one shard of several, such as model-00001-of-00002.safetensors.
bool is_one_of_shards(const std::string& path);

}  // namespace orrery
