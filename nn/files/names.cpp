// Chapter 9. Names on disk: the tables of families, what wrappers add, and tied weights that are stored once.
#include "nn/files/names.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/files/shards.h"

namespace orrery::nn {
namespace {

using Texts = std::vector<std::string_view>;

// Whether the pattern fits the name; what its stars stand for is appended to `stars`.
bool fits(std::string_view pattern, std::string_view name, Texts& stars) {
  const size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  const bool rest = pattern.substr(star).starts_with("**");
  pattern.remove_prefix(star + (rest ? 2 : 1));
  name.remove_prefix(star);
  const size_t most = rest ? name.size() : std::min(name.find('.'), name.size());
  for (size_t length = 1; length <= most; ++length) {
    stars.push_back(name.substr(0, length));
    if (fits(pattern, name.substr(length), stars)) return true;
    stars.pop_back();
  }
  return false;
}

std::string filled(std::string_view pattern, const Texts& stars) {
  std::string name;
  for (const std::string_view text : stars) {
    const size_t star = pattern.find('*');
    name.append(pattern.substr(0, star)).append(text);
    pattern.remove_prefix(star + (pattern.substr(star).starts_with("**") ? 2 : 1));
  }
  return name.append(pattern);
}

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

// TensorFlow's names of a norm's weight and bias become PyTorch's.
std::string in_pytorchs_words(std::string name) {
  if (name.ends_with("LayerNorm.gamma")) name.replace(name.rfind("gamma"), name.npos, "weight");
  if (name.ends_with("LayerNorm.beta")) name.replace(name.rfind("beta"), name.npos, "bias");
  return name;
}

// The name in files, if there they are one tensor.
std::string name_in_files(const Family& family, const std::string& name) {
  const NameOnDisk on_disk = family.on_disk(name);
  return on_disk.names.size() == 1 ? on_disk.names[0] : name;
}

}  // namespace

NameOnDisk Family::on_disk(const std::string& in_memory) const {
  using enum NamePattern::Mark;
  for (const NamePattern& row : patterns) {
    Texts stars;
    if (row.mark == ignored || row.mark == copy || !fits(row.in_memory, in_memory, stars)) continue;
    NameOnDisk result{.names = {}, .transposed = row.mark == transposed && in_memory.ends_with(".weight")};
    for (const std::string_view pattern : row.on_disk) result.names.push_back(filled(pattern, stars));
    return result;
  }
  return {.names = {in_memory}};
}

bool Family::knows(const std::string& on_disk) const {
  Texts stars;
  for (const NamePattern& row : patterns)
    for (const std::string_view pattern : row.on_disk)
      if (fits(pattern, on_disk, stars)) return true;
  return false;
}

bool Family::marks(const std::string& on_disk, NamePattern::Mark mark) const {
  Texts stars;
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const NamePattern& row) { return row.mark == mark && fits(row.on_disk[0], on_disk, stars); });
}

const Family& family(std::string_view name) {
  using enum NamePattern::Mark;
  static const std::array<Family, 3> families{
      // torch.nn.Transformer and its layers.
      Family{.name = "pytorch",
             .prefix = "",
             .patterns = {{"in_proj.**", {"in_proj_**"}}, {"**.in_proj.**", {"**.in_proj_**"}}}},
      // GPT-2 as published. Hugging Face's files may also have the causal mask as a table, and a tied embedding twice.
      Family{.name = "gpt2",
             .prefix = "transformer.",
             .patterns = {{"", {"h.*.attn.bias"}, ignored},
                          {"", {"h.*.attn.masked_bias"}, ignored},
                          {"token_embedding.weight", {"lm_head.weight"}, copy},
                          {"token_embedding.**", {"wte.**"}},
                          {"position_embedding.**", {"wpe.**"}},
                          {"layers.*.norm1.**", {"h.*.ln_1.**"}},
                          {"layers.*.self_attn.in_proj.**", {"h.*.attn.c_attn.**"}, transposed},
                          {"layers.*.self_attn.out_proj.**", {"h.*.attn.c_proj.**"}, transposed},
                          {"layers.*.self_attn.**", {"h.*.attn.**"}},
                          {"layers.*.norm2.**", {"h.*.ln_2.**"}},
                          {"layers.*.linear1.**", {"h.*.mlp.c_fc.**"}, transposed},
                          {"layers.*.linear2.**", {"h.*.mlp.c_proj.**"}, transposed},
                          {"layers.**", {"h.**"}},
                          {"final_norm.**", {"ln_f.**"}},
                          {"lm_head.**", {"lm_head.**"}}}},
      // BERT of Hugging Face: queries, keys and values are three linear maps. Its files may also have the numbers of
      // positions, and the embedding and the bias of words twice.
      Family{.name = "bert",
             .prefix = "bert.",
             .patterns = {{"", {"embeddings.position_ids"}, ignored},
                          {"token_embedding.weight", {"cls.predictions.decoder.weight"}, copy},
                          {"words.bias", {"cls.predictions.decoder.bias"}, copy},
                          {"token_embedding.**", {"embeddings.word_embeddings.**"}},
                          {"position_embedding.**", {"embeddings.position_embeddings.**"}},
                          {"segment_embedding.**", {"embeddings.token_type_embeddings.**"}},
                          {"embedding_norm.**", {"embeddings.LayerNorm.**"}},
                          {"layers.*.self_attn.in_proj.**",
                           {"encoder.layer.*.attention.self.query.**", "encoder.layer.*.attention.self.key.**",
                            "encoder.layer.*.attention.self.value.**"}},
                          {"layers.*.self_attn.out_proj.**", {"encoder.layer.*.attention.output.dense.**"}},
                          {"layers.*.norm1.**", {"encoder.layer.*.attention.output.LayerNorm.**"}},
                          {"layers.*.linear1.**", {"encoder.layer.*.intermediate.dense.**"}},
                          {"layers.*.linear2.**", {"encoder.layer.*.output.dense.**"}},
                          {"layers.*.norm2.**", {"encoder.layer.*.output.LayerNorm.**"}},
                          {"pooler.**", {"pooler.dense.**"}},
                          {"words.dense.**", {"cls.predictions.transform.dense.**"}, head},
                          {"words.norm.**", {"cls.predictions.transform.LayerNorm.**"}, head},
                          {"words.**", {"cls.predictions.**"}, head},
                          {"next_sentence.**", {"cls.seq_relationship.**"}, head},
                          {"classifier.**", {"classifier.**"}, head},
                          {"span.**", {"qa_outputs.**"}, head}}}};
  for (const Family& each : families)
    if (each.name == name) return each;
  fail("names on disk", "there is no family ", name);
}

Parameters parameters_on_disk(Module& module) {
  Parameters parameters = module.parameters();
  for (NamedParameter& p : parameters) p.name = name_in_files(family(module.family()), p.name);
  return parameters;
}

std::vector<Module::NamedBuffer> buffers_on_disk(Module& module) {
  std::vector<Module::NamedBuffer> buffers = module.buffers();
  for (Module::NamedBuffer& b : buffers) b.name = name_in_files(family(module.family()), b.name);
  return buffers;
}

std::string name_in_model(const std::string& name, const NamesOnDisk& names) {
  if (names.known(name) || name.size() > longest_name) return name;
  for (std::string rest = in_pytorchs_words(without_wrappers(name));;) {
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
