// Chapter 9. Tests of names on disk: what wrappers of PyTorch add is taken away, and tied weights are found.
#include "nn/files/names.h"

#include <doctest/doctest.h>

#include <set>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "nn/models/stack.h"
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

TEST_CASE("the tables of families say what names stand for, and which are stored as [in, out]") {
  const auto on_disk = [](const char* family, const std::string& name) {
    const nn::NameOnDisk found = nn::family(family).on_disk(name);
    REQUIRE(found.names.size() == 1);
    return found.names[0] + (found.transposed ? " turned" : "");
  };
  const auto pytorch = [&](const std::string& name) { return on_disk("pytorch", name); };
  CHECK(pytorch("in_proj.bias") == "in_proj_bias");
  CHECK(pytorch("encoder.layers.11.self_attn.in_proj.weight") == "encoder.layers.11.self_attn.in_proj_weight");
  CHECK(pytorch("x.in_proj.lora.A") == "x.in_proj_lora.A");
  for (const std::string same : {"x.out_proj.weight", "my_in_proj.weight", "in_proj", "in_proj.", ""})
    CHECK(pytorch(same) == same);
  const auto gpt2 = [&](const std::string& name) { return on_disk("gpt2", name); };
  CHECK(gpt2("token_embedding.weight") == "wte.weight");
  CHECK(gpt2("layers.3.norm1.weight") == "h.3.ln_1.weight");
  CHECK(gpt2("layers.3.self_attn.in_proj.weight") == "h.3.attn.c_attn.weight turned");
  CHECK(gpt2("layers.3.self_attn.in_proj.bias") == "h.3.attn.c_attn.bias");
  CHECK(gpt2("layers.3.self_attn.query_key_map.g") == "h.3.attn.query_key_map.g");
  CHECK(gpt2("layers.10.linear2.weight") == "h.10.mlp.c_proj.weight turned");
  CHECK(gpt2("layers.0.self_attn.deep.norm1.weight") == "h.0.attn.deep.norm1.weight");
  CHECK(gpt2("lm_head.weight") == "lm_head.weight");
  CHECK(nn::family("gpt2").ignores("h.0.attn.masked_bias"));
  CHECK_FALSE(nn::family("gpt2").ignores("h.0.attn.c_attn.bias"));
  CHECK(nn::family("gpt2").knows("h.0.new.part"));
  CHECK_FALSE(nn::family("gpt2").knows("hh.0.ln_1.weight"));
  const auto bert = [&](const std::string& name) { return on_disk("bert", name); };
  CHECK(bert("segment_embedding.weight") == "embeddings.token_type_embeddings.weight");
  CHECK(bert("embedding_norm.bias") == "embeddings.LayerNorm.bias");
  CHECK(bert("pooler.weight") == "pooler.dense.weight");
  CHECK(bert("words.norm.weight") == "cls.predictions.transform.LayerNorm.weight");
  CHECK(bert("words.bias") == "cls.predictions.bias");
  CHECK(bert("next_sentence.weight") == "cls.seq_relationship.weight");
  CHECK(bert("span.bias") == "qa_outputs.bias");
  CHECK(nn::family("bert").marks("classifier.bias", nn::NamePattern::head));
  CHECK_FALSE(nn::family("bert").marks("pooler.dense.bias", nn::NamePattern::head));
  CHECK(error_of([] { nn::family("t5"); }) == "names on disk: there is no family t5");
}

TEST_CASE("what several tensors of a file hold is joined in memory, and parted again") {
  struct OfBert : nn::Module {
    std::vector<nn::EncoderLayer> layers;
    explicit OfBert(u64 seed) {
      Rng rng(seed);
      for (int i = 0; i < 2; ++i) layers.emplace_back(nn::LayerOptions{.d_model = 4, .num_heads = 2, .d_ff = 6}, rng);
    }
    void visit(nn::Visitor& v) override { v("layers", layers); }
    std::string_view family() const override { return "bert"; }
  } model(1), other(2);
  const TemporaryFolder folder;
  const std::string path = folder / "a", self = "encoder.layer.1.attention.self.";
  const Tensor packed = model.layers[1].self_attn.as<nn::MultiHeadAttention>().in_proj.weight.value();
  TensorMap stored = nn::tensors_on_disk(model);
  CHECK(stored.size() == 2 * (6 + 2 + 2 * 2 + 2 * 2));
  CHECK(same_bits(stored.at(self + "query.weight"), packed.rows(0, 4)));
  CHECK(same_bits(stored.at(self + "key.weight"), packed.rows(4, 8)));
  CHECK(same_bits(stored.at(self + "value.weight"), packed.rows(8, 12)));
  CHECK(stored.at("encoder.layer.0.attention.self.key.bias").shape() == Shape{4});
  CHECK(stored.at("encoder.layer.0.intermediate.dense.weight").shape() == Shape{6, 4});
  TensorMap published;
  for (const auto& [name, tensor] : stored) published["bert." + name] = tensor;
  write_safetensors(path, published);
  nn::load(other, path);
  CHECK(same_bits(other.layers[1].self_attn.as<nn::MultiHeadAttention>().in_proj.weight.value(), packed));
  CHECK(same_bits(other.layers[0].norm2.weight.value(), model.layers[0].norm2.weight.value()));
  TensorMap state;  // a training's FILE.resume holds them joined, under the model's own names
  for (const NamedParameter& p : nn::parameters_on_disk(model)) state["parameter." + p.name] = p.value.value();
  CHECK(state.contains("parameter.layers.1.self_attn.in_proj.weight"));
  write_safetensors(path, state);
  OfBert resumed(3);
  CHECK(nn::load(resumed, path, {.prefix = "parameter."}).left_over.empty());
  CHECK(same_bits(resumed.layers[1].self_attn.as<nn::MultiHeadAttention>().in_proj.weight.value(), packed));
  state["parameter.layers.1.self_attn.in_proj.weight"] = zeros({11, 4});
  CHECK(small::contains(error_of([&] { nn::load(resumed, state, "test", {.prefix = "parameter."}); }),
                        "3 missing: parameter." + self));
  stored.erase(self + "key.weight");
  CHECK(error_of([&] { nn::load(other, stored, "test"); }) ==
        "test: the file does not fit the model; 1 missing: " + self + "key.weight");
  Rng rng(3);
  model.layers[0].self_attn = nn::MultiHeadAttention(4, 2, rng, {.d_v = 3});
  CHECK(error_of([&] { nn::tensors_on_disk(model); }) ==
        "names on disk: layers.0.self_attn.in_proj.weight of shape [14, 4] has no 3 equal parts");
}

TEST_CASE("prefixes of wrappers are taken away, in any order and number, and a family's own") {
  const nn::NamesOnDisk names = knowing({"a.weight", "h.0.b"});
  for (const std::string known :
       {"a.weight", "module.a.weight", "_orig_mod.a.weight", "module._orig_mod.a.weight", "_orig_mod.module.a.weight",
        "module.module.a.weight", "a._orig_mod.weight", "module.transformer.a.weight",
        "_orig_mod.transformer._orig_mod.a.weight", "_fsdp_wrapped_module.a._checkpoint_wrapped_module.weight"})
    CHECK(nn::name_in_model(known, names) == "a.weight");
  CHECK(nn::name_in_model("transformer.h.0._orig_mod.b", names) == "h.0.b");
  const nn::NamesOnDisk norm = knowing({"x.LayerNorm.weight", "x.LayerNorm.bias"});
  CHECK(nn::name_in_model("transformer.x.LayerNorm.gamma", norm) == "x.LayerNorm.weight");
  CHECK(nn::name_in_model("x.LayerNorm.beta", norm) == "x.LayerNorm.bias");
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
