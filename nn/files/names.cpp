// Chapter 9. Names on disk: taking away what wrappers add, and finding tied weights that are stored once.
#include "nn/files/names.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/files/shards.h"

namespace orrery::nn {
namespace {

// Parts of a name that no model has: torch.compile, fully sharded data parallel and activation checkpoints add them.
constexpr std::array<std::string_view, 3> wrappers{"_orig_mod.", "_fsdp_wrapped_module.",
                                                   "_checkpoint_wrapped_module."};
// A longer name is no model's. Without a limit, a hostile one of a million prefixes would take hours.
constexpr size_t longest_name = 512;
// DistributedDataParallel's. A part of a model may be called so, too, so it is taken away only at the beginning.
constexpr std::string_view data_parallel = "module.";

std::string without_wrappers(std::string name) {
  for (const std::string_view wrapper : wrappers)
    for (size_t at = 0; (at = name.find(wrapper, at)) != name.npos;) {
      if (at == 0 || name[at - 1] == '.')
        name.erase(at, wrapper.size());
      else
        at += wrapper.size();
    }
  return name;
}

}  // namespace

std::string name_in_model(const std::string& name, const NamesOnDisk& names) {
  if (names.known(name) || name.size() > longest_name) return name;
  for (std::string rest = without_wrappers(name);;) {
    if (names.known(rest)) return rest;
    if (rest.starts_with(data_parallel))
      rest.erase(0, data_parallel.size());
    else if (!names.prefix.empty() && rest.starts_with(names.prefix))
      rest.erase(0, names.prefix.size());
    else
      return name;
  }
}

TensorFile read_named(const std::string& path, const NamesOnDisk& names) {
  check(!is_one_of_shards(path), "load " + path,
        "is one of several shards of a model: load their folder, or the index beside them");
  std::map<std::string, std::string> name_in_file;  // by the model's name
  TensorMap unread;
  const auto wanted = [&](const std::string& in_file) {
    const std::string name = name_in_model(in_file, names);
    if (names.ignored && names.ignored(name)) return false;
    const auto [first, is_new] = name_in_file.emplace(name, in_file);
    check(is_new, "load " + path, name, " is in the file twice, as ", printable(first->second), " and ",
          printable(in_file));
    if (names.known(name)) return true;
    unread[name];
    return false;
  };
  TensorFile file = read_safetensors(path, wanted);
  TensorMap tensors = std::move(unread);
  for (const auto& [name, in_file] : name_in_file)
    if (!tensors.contains(name)) tensors[name] = file.tensors.at(in_file);
  for (const auto& [alias, in_file] : file.metadata) {
    const auto stored = file.tensors.find(in_file);
    const std::string name = name_in_model(alias, names);
    if (stored != file.tensors.end() && names.known(name)) tensors.emplace(name, stored->second);
  }
  file.tensors = std::move(tensors);
  return file;
}

}  // namespace orrery::nn
