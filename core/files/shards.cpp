// Chapter 9. Finding a model's files: what a folder holds, and what an index says.
#include "core/files/shards.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/files/file.h"
#include "core/files/json.h"

namespace orrery {
namespace {

constexpr std::string_view end_of_index = ".index.json";
// In a folder, the first of these counts, as for Hugging Face's transformers. Pickles are named so that the error can
// say what they are.
constexpr std::string_view names_of_models[] = {"model.safetensors", "model.safetensors.index.json",
                                                "pytorch_model.bin", "pytorch_model.bin.index.json"};

bool is_there(const std::filesystem::path& path) {
  std::error_code unreadable;  // what cannot be looked at counts as missing
  return std::filesystem::exists(path, unreadable);
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

Json index_in(const std::string& path, const std::string& operation) {
  const InputFile file(path);
  check(file.size() <= most_json_bytes, operation, "has ", file.size(), " bytes: it is not an index of shards");
  Json index = parse_json_object(file.text(), operation);
  const auto map = index.find("weight_map");
  check(map != index.end() && map->is_object() && !map->empty(), operation,
        "is not an index of shards: it has no object weight_map, from names of tensors to files");
  return index;
}

}  // namespace

std::string model_file(const std::string& path) {
  std::error_code unreadable;
  if (!std::filesystem::is_directory(path, unreadable)) return path;
  const std::filesystem::path folder = path;
  for (const std::string_view name : names_of_models)
    if (is_there(folder / name)) return (folder / name).string();
  return (folder / names_of_models[0]).string();
}

ModelFiles model_files(const std::string& given) {
  const std::string path = model_file(given), operation = "read " + path;
  ModelFiles files;
  if (!path.ends_with(end_of_index)) {
    files.shards.push_back({path, std::nullopt});
    return files;
  }
  const Json index = index_in(path, operation);
  std::map<std::string, std::set<std::string>> names_by_shard;
  for (const auto& [name, value] : index.at("weight_map").items()) {
    const std::string shard = value.is_string() ? value.get<std::string>() : "";
    check(is_plain_name(shard), operation, "says that tensor ", printable(name), " is in ", Shown{value},
          ", which is not the name of a file beside it");
    names_by_shard[shard].insert(name);
  }
  for (auto& [shard, names] : names_by_shard) {
    const std::filesystem::path beside = std::filesystem::path(path).replace_filename(shard);
    check(is_there(beside), operation, "needs ", printable(shard), " beside it, which is missing");
    files.shards.push_back({beside.string(), std::move(names)});
  }
  const auto metadata = index.find("metadata");
  if (metadata != index.end() && metadata->is_object())
    for (const auto& [key, value] : metadata->items())
      if (value.is_string()) files.metadata[key] = value.get<std::string>();
  return files;
}

bool is_one_of_shards(const std::string& path) {
  constexpr std::string_view form = "-00000-of-00000.safetensors", only_one = "-00001-of-00001.safetensors";
  if (path.size() < form.size()) return false;
  std::string end = path.substr(path.size() - form.size());
  if (end == only_one) return false;
  for (char& c : end)
    if (c >= '0' && c <= '9') c = '0';
  return end == form;
}

u64 bytes_of_model(const std::string& path) {
  u64 bytes = 0;
  for (const Shard& shard : model_files(path).shards) bytes += InputFile(shard.path).size();
  return bytes;
}

}  // namespace orrery
