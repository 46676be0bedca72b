// Chapter 9. Tests of models in several files: they are read as one, and an index that lies is refused in one line.
#include "core/files/shards.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/core/files/safetensors_files.h"

using namespace orrery;
using small::error_of;

namespace {

// A model in two shards, as Hugging Face's transformers saves a large one.
struct ShardedModel {
  ShardedModel() {
    write_safetensors(folder / "a.safetensors", {{"x", full({2}, 1.0)}, {"y", full({3}, 2.0)}}, {{"format", "pt"}});
    write_safetensors(folder / "b.safetensors", {{"z", full({4}, 3.0)}}, {{"format", "other"}, {"more", "b"}});
    set_index(R"({"metadata": {"total_size": 36, "tied": "x"}, "weight_map":
                  {"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"}})");
  }
  void set_index(const std::string& json) const { set_contents(index, json); }
  void set_map(const std::string& map) const { set_index(R"({"weight_map": )" + map + "}"); }
  std::string refusal() const {
    return error_of([&] { read_safetensors(index); });
  }

  TemporaryFolder folder;
  std::string index = folder / "model.safetensors.index.json", read = "read " + index + ": ";
};

}  // namespace

TEST_CASE("shards are read as one file, from their index or their folder") {
  const ShardedModel model;
  for (const std::string& path : {model.index, model.folder.path().string(), model.folder.path().string() + "/"}) {
    CAPTURE(path);
    const TensorFile file = read_safetensors(path);
    CHECK(file.tensors.size() == 3);
    CHECK(same_bits(file.tensors.at("x"), full({2}, 1.0)));
    CHECK(same_bits(file.tensors.at("z"), full({4}, 3.0)));
    CHECK(file.metadata == Metadata{{"format", "pt"}, {"more", "b"}, {"tied", "x"}});
    CHECK(read_safetensors_metadata(path) == file.metadata);
    CHECK(read_safetensors(path, [](const std::string& name) { return name == "y"; }).tensors.size() == 1);
    const FileSummary summary = summarise_safetensors(path);
    CHECK(summary.files == 2);
    CHECK(summary.tensors.size() == 3);
    CHECK(summary.tensors[2].file == model.folder / "b.safetensors");
    CHECK(summary.bytes == std::filesystem::file_size(model.folder / "a.safetensors") +
                               std::filesystem::file_size(model.folder / "b.safetensors"));
    CHECK(bytes_of_model(path) == summary.bytes);
  }
}

TEST_CASE("in a folder a whole model counts before shards, and a pickle is named as what it is") {
  const ShardedModel model;
  const std::string folder = model.folder.path().string();
  CHECK(model_file(folder) == model.index);
  write_safetensors(folder + "/model.safetensors", {{"w", zeros({1})}});
  CHECK(read_safetensors(folder).tensors.contains("w"));
  CHECK(model_file(folder + "/a.safetensors") == folder + "/a.safetensors");
  const TemporaryFolder other;
  const std::string empty = other.path().string();
  CHECK(error_of([&] { read_safetensors(empty); }) ==
        "read " + empty + "/model.safetensors: No such file or directory");
  set_contents(empty + "/pytorch_model.bin", "PK\x03\x04" + std::string(100, 'x'));
  const std::string pickle = error_of([&] { read_safetensors(empty); });
  CHECK(pickle.starts_with("read " + empty +
                           "/pytorch_model.bin: is not a safetensors file: it is a ZIP archive, such "
                           "as torch.save writes; this makes one of it: python3 -c 'import sys"));
  CHECK(pickle.find('\n') == pickle.npos);
}

TEST_CASE("an index that does not say what its shards hold is refused") {
  const ShardedModel model;
  const std::string a = model.folder / "a.safetensors", b = model.folder / "b.safetensors";
  model.set_map(R"({"x": "a.safetensors", "y": "a.safetensors", "z": "c.safetensors"})");
  CHECK(model.refusal() == model.read + "needs 'c.safetensors' beside it, which is missing");
  model.set_map(R"({"x": "a.safetensors", "y": "a.safetensors", "w": "a.safetensors", "z": "b.safetensors"})");
  CHECK(model.refusal() == model.read + "says that tensor 'w' is in " + a + ", which does not hold it");
  model.set_map(R"({"x": "a.safetensors", "z": "b.safetensors"})");
  CHECK(model.refusal() == model.read + "does not say that tensor 'y' is in " + a + ", which holds it");
  model.set_map(R"({"x": "a.safetensors", "x": "b.safetensors"})");
  CHECK(small::contains(model.refusal(), "\"x\" twice"));
  model.set_map(R"({"x": "a.safetensors", "y": "a.safetensors", "z": "b.safetensors"})");
  write_safetensors(b, {{"x", zeros({2})}, {"z", zeros({4})}});  // in both files
  CHECK(model.refusal() == model.read + "does not say that tensor 'x' is in " + b + ", which holds it");
  model.set_index("{}");
  CHECK(model.refusal() == model.read +
                               "is not an index of shards: it has no object weight_map, from names of tensors "
                               "to files");
  model.set_map("{}");
  CHECK(small::contains(model.refusal(), "has no object weight_map"));
  model.set_index("[");
  CHECK(small::contains(model.refusal(), "is not valid JSON"));
  model.set_index(std::string(2 << 20, ' '));
  CHECK(model.refusal() == model.read + "has 2097152 bytes: it is not an index of shards");
}

TEST_CASE("promise 21: an index names files beside it, and nothing else") {
  const ShardedModel model;
  const std::string folder = std::filesystem::path(model.index).parent_path().filename().string();
  for (const std::string& name :
       {std::string("\"../") + folder + "/a.safetensors\"", "\"" + (model.folder / "a.safetensors") + "\"",
        std::string(R"("./a.safetensors")"), std::string(R"("..")"), std::string(R"(".")"), std::string(R"("")"),
        std::string(R"("a.safetensors\u0000")"), std::string("7"), std::string("[\"a.safetensors\"]")}) {
    CAPTURE(name);
    model.set_map(R"({"x": )" + name + "}");
    const std::string refusal = model.refusal();
    CHECK(refusal.starts_with(model.read + "says that tensor 'x' is in "));
    CHECK(refusal.ends_with(", which is not the name of a file beside it"));
  }
  model.set_map(R"({"x": "model.safetensors.index.json"})");  // itself
  CHECK(small::contains(model.refusal(), "is not a safetensors file: "));
}
