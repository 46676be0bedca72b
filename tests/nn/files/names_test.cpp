// Chapter 9. Tests of names on disk: what wrappers of PyTorch add is taken away, and tied weights are found.
#include "nn/files/names.h"

#include <doctest/doctest.h>

#include <set>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "tests/core/files/safetensors_files.h"

using namespace orrery;
using small::error_of;

namespace {

struct Inner : nn::Module {
  Variable weight = parameter(zeros({2}));
  void visit(nn::Visitor& v) override { v("weight", weight); }
};

// A part that is called as DistributedDataParallel's prefix, and a weight with two names.
struct Wrapped : nn::Module {
  Inner module;
  Variable shared = parameter(zeros({3}));
  void visit(nn::Visitor& v) override {
    v("module", module);
    v("table", shared);
    v("head", shared);
  }
};

nn::NamesOnDisk knowing(const std::set<std::string>& names) {
  return {.known = [names](const std::string& name) { return names.contains(name); }, .prefix = "transformer."};
}

}  // namespace

TEST_CASE("prefixes of wrappers are taken away, in any order and number, and a family's own") {
  const nn::NamesOnDisk names = knowing({"a.weight", "h.0.b"});
  for (const std::string known :
       {"a.weight", "module.a.weight", "_orig_mod.a.weight", "module._orig_mod.a.weight", "_orig_mod.module.a.weight",
        "module.module.a.weight", "a._orig_mod.weight", "module.transformer.a.weight",
        "_orig_mod.transformer._orig_mod.a.weight", "_fsdp_wrapped_module.a._checkpoint_wrapped_module.weight"})
    CHECK(nn::name_in_model(known, names) == "a.weight");
  CHECK(nn::name_in_model("transformer.h.0._orig_mod.b", names) == "h.0.b");
  // What is not known keeps its whole name, for the message that lists it.
  for (const std::string other : {"module.a", "transformer.other", "not_orig_mod.a.weight", "a.module.weight", ""})
    CHECK(nn::name_in_model(other, names) == other);
}

TEST_CASE("a name that the model has is never changed, and each prefix only as far as needed") {
  const nn::NamesOnDisk names = knowing({"module.weight"});
  CHECK(nn::name_in_model("module.weight", names) == "module.weight");
  CHECK(nn::name_in_model("module.module.weight", names) == "module.weight");
  CHECK(nn::name_in_model("_orig_mod.module.weight", names) == "module.weight");
  CHECK(nn::name_in_model("weight", names) == "weight");
}

TEST_CASE("a hostile name of a million prefixes takes no time") {
  std::string name;
  for (int i = 0; i < 1'000'000; ++i) name += "module.";
  CHECK(nn::name_in_model(name, knowing({"a"})) == name);
}

TEST_CASE("any module is loaded from files of wrapped models, tied weights also if they are stored once") {
  const TemporaryFolder folder;
  const std::string path = folder / "a", load = "load " + path + ": ";
  const Tensor weight = full({2}, 1.0), shared = full({3}, 2.0), other = full({3}, 3.0);
  for (const std::string prefix : {"", "module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."}) {
    CAPTURE(prefix);
    Wrapped model;
    write_safetensors(path,
                      {{prefix + "module.weight", weight}, {prefix + "table", shared}, {prefix + "head", shared}});
    nn::load(model, path);
    CHECK(same_bits(model.module.weight.value(), weight));
    CHECK(same_bits(model.shared.value(), shared));
    // As safetensors.torch.save_model does: the metadata have the other name.
    write_safetensors(path, {{prefix + "module.weight", weight}, {prefix + "head", other}},
                      {{"format", "pt"}, {prefix + "table", prefix + "head"}});
    nn::load(model, path);
    CHECK(same_bits(model.shared.value(), other));
  }
  Wrapped model;
  write_safetensors(path, {{"module.weight", weight}, {"head", other}}, {{"table", "nowhere"}, {"x", "head"}});
  CHECK(error_of([&] { nn::load(model, path); }) == load + "the file does not fit the model; 1 missing: table");
  write_safetensors(path, {{"module.weight", weight}, {"head", other}, {"table", other}, {"_orig_mod.table", other}});
  CHECK(error_of([&] { nn::load(model, path); }) ==
        load + "table is in the file twice, as '_orig_mod.table' and 'table'");
  write_safetensors(path, {{"module.weight", weight}, {"head", other}, {"table", shared}}, {{"table", "head"}});
  CHECK(small::contains(error_of([&] { nn::load(model, path); }), "are one parameter in the model, and differ"));
}

TEST_CASE("what a model does not know is listed, also if its dtype could not be read") {
  const TemporaryFolder folder;
  const std::string path = folder / "a";
  set_contents(path, raw_file(R"({"weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, )"
                              R"("epoch": {"dtype": "I64", "shape": [], "data_offsets": [8, 16]}})",
                              std::string(16, '\0')));
  Inner model;
  CHECK(error_of([&] { nn::load(model, path); }) ==
        "load " + path + ": the file does not fit the model; 1 unexpected: 'epoch'");
}

TEST_CASE("a model is loaded from shards, and their bytes together bound its size") {
  const TemporaryFolder folder;
  const std::string index = folder / "model.safetensors.index.json";
  write_safetensors(folder / "1", {{"module.weight", full({2}, 1.0)}});
  write_safetensors(folder / "2", {{"table", full({3}, 2.0)}, {"head", full({3}, 2.0)}});
  set_contents(index, R"({"weight_map": {"module.weight": "1", "table": "2", "head": "2"}})");
  Wrapped model;
  nn::load(model, folder.path().string());
  CHECK(same_bits(model.shared.value(), full({3}, 2.0)));
  const std::string shard = folder / "model-00001-of-00002.safetensors",
                    whole = folder / "a-00001-of-00001.safetensors";
  write_safetensors(shard, {{"table", full({3}, 2.0)}});
  CHECK(error_of([&] { nn::load(model, shard); }) ==
        "load " + shard + ": is one of several shards of a model: load their folder, or the index beside them");
  nn::save(model, whole);
  CHECK_NOTHROW(nn::load(model, whole));
  CHECK_NOTHROW(nn::check_size(1 << 20, index));
  CHECK(error_of([&] { nn::check_size(i64{1} << 30, index); }).find("is too small for the model") != std::string::npos);
}
