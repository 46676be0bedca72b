// Chapter 9. GPTs in files: ours come back, other programs' names are understood, what does not fit is refused.
#include "nn/files/gpt_files.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/attention/rotary.h"
#include "nn/files/files.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Gpt;
using nn::GptConfig;
using small::error_of;

namespace {

void check_equal(Gpt& a, Gpt& b) {
  const Parameters p = a.parameters(), q = b.parameters();
  REQUIRE(p.size() == q.size());
  for (size_t i = 0; i < p.size(); ++i) {
    CHECK(p[i].name == q[i].name);
    CHECK(same_bits(p[i].value.value(), q[i].value.value()));
  }
}

// ALiBi, without its slopes. Nothing of it is a parameter.
struct LinearBias : nn::ScoreBias {
  Variable operator()(i64 n, i64 m, Dtype dtype) const override { return constant(zeros({2, distances(n, m)}, dtype)); }
  void visit(nn::Visitor&) override {}
};

// Attends to nothing.
struct Silent : nn::Attention {
  Variable self_attention(const Variable& x, const Mask&, nn::Pass&) const override { return x * 0.0; }
  void visit(nn::Visitor&) override {}
};

struct Identity : nn::LinearMap {
  Variable operator()(const Variable& x, RowRange) const override { return x; }
  void visit(nn::Visitor&) override {}
};

struct ScaledIdentity : Identity {
  Tensor scale = full({1}, 2.0);
  void visit(nn::Visitor& v) override { v("scale", scale); }
};

// The file of a model, changed.
template <class Change> void rewrite(const std::string& path, const Change& change) {
  TensorFile file = read_safetensors(path);
  change(file);
  write_safetensors(path, file.tensors, file.metadata);
}

}  // namespace

TEST_CASE("a saved model comes back from its file alone, with its configuration and other metadata") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  for (const bool tied : {true, false}) {
    GptConfig config = small_gpt();
    config.tied = config.rotary = config.query_key_norm = tied;
    Gpt model = build_gpt(config);
    nn::save(model, path, {{"alphabet", "abc"}});
    Gpt loaded = nn::load_gpt(path);
    CHECK(loaded.config == config);
    check_equal(loaded, model);
    CHECK(read_safetensors_metadata(path).at("alphabet") == "abc");
    CHECK(read_safetensors(path).tensors.contains("lm_head.weight") == !tied);
  }
}

TEST_CASE("a prefix, masks and a copy of the table are understood") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  Gpt model = build_gpt(small_gpt());
  nn::save(model, path);
  rewrite(path, [](TensorFile& file) {
    TensorMap renamed;
    for (const auto& [name, tensor] : file.tensors) renamed["transformer." + name] = tensor;
    renamed["transformer.h.0.attn.bias"] = zeros({1, 1, 6, 6});
    renamed["transformer.h.0.attn.masked_bias"] = zeros({});
    renamed["lm_head.weight"] = file.tensors.at("wte.weight");
    file = {renamed, {}};
  });
  Gpt loaded = nn::load<Gpt>(path, small_gpt());
  check_equal(loaded, model);
}

TEST_CASE("without a configuration the sizes follow from the shapes, and the number of heads has to be given") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  for (const bool other : {false, true}) {
    GptConfig config{
        .vocab_size = 9, .layer = {.d_model = 128, .num_heads = 2, .d_ff = 5}, .num_layers = 3, .max_len = 4};
    config.layer.bias = config.tied = !other;
    Gpt model = build_gpt(config);
    nn::save(static_cast<nn::Module&>(model), path);
    const std::string refusal = error_of([&] { nn::load_gpt(path); });
    CHECK(refusal == "load " + path +
                         ": does not say how many heads its attention has, on which its outputs depend: give --heads "
                         "(in C++ num_heads), or put the model's config.json beside it. With d_model 128 there can be "
                         "1, 2, 4, 8; GPT-2's heads of 64 columns would be 2");
    Gpt loaded = nn::load_gpt(path, 2);
    CHECK(loaded.config == config);
    check_equal(loaded, model);
    CHECK(nn::load_gpt(path, 4).config.layer.num_heads == 4);
    CHECK(error_of([&] { nn::load_gpt(path, 3); }).find("d_model (128)") != std::string::npos);
  }
}

TEST_CASE("a number of heads that contradicts the file is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  Gpt model = build_gpt(small_gpt());
  nn::save(model, path);
  CHECK(nn::load_gpt(path, 2).config == small_gpt());
  CHECK(error_of([&] { nn::load_gpt(path, 4); }) == "load " + path + ": has 2 heads, not 4");
  rewrite(path, [](TensorFile& file) { file.metadata.clear(); });
  CHECK(small::contains(error_of([&] { nn::load_gpt(path); }), "With d_model 8 there can be 1, 2, 4, 8"));
}

TEST_CASE("the published sizes are known by their shapes, and only these") {
  const auto heads = [](GptConfig config, i64 tokens, i64 more_layers = 0) {
    FileSummary file;  // the shapes alone: these models are large
    const auto add = [&](const std::string& name, const Shape& shape) {
      file.tensors.push_back({{.name = "transformer." + name, .shape = shape}, "", ""});
    };
    const i64 d = config.layer.d_model;
    add("wte.weight", {tokens, d});
    add("wpe.weight", {config.max_len, d});
    add("h.0.mlp.c_fc.weight", {d, 4 * d});
    for (i64 i = 0; i < config.num_layers + more_layers; ++i) add("h." + std::to_string(i) + ".ln_1.weight", {d});
    return nn::gpt_of_shapes(file).value().layer.num_heads;
  };
  const std::map<std::string, i64> published{
      {"distilgpt2", 12}, {"gpt2", 12}, {"gpt2-medium", 16}, {"gpt2-large", 20}, {"gpt2-xl", 25}};
  for (const auto& entry : published) {
    const std::string& name = entry.first;
    const i64 number = entry.second;
    CAPTURE(name);
    const GptConfig config = nn::gpt_preset(name);
    CHECK(heads(config, config.vocab_size) == number);
    CHECK(heads(config, config.vocab_size + 1) == 0);
    CHECK(heads(config, config.vocab_size, 1) == 0);
    CHECK(heads(config, 50304) == number);  // as nanoGPT pads it
  }
  CHECK(heads(nn::gpt_preset("nanogpt"), 65) == 0);  // a recipe of many models, not a published one
  CHECK(heads(nn::gpt_preset("nanogpt"), 50257) == 0);
}

TEST_CASE("a number of heads that is given is believed rather than that of a published model of these sizes") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  TensorMap tensors;  // DistilGPT-2, apart from what `load` misses last
  const GptConfig config = nn::gpt_preset("distilgpt2");
  const i64 d = config.layer.d_model;
  tensors["wte.weight"] = zeros({config.vocab_size, d});
  tensors["wpe.weight"] = zeros({config.max_len, d});
  tensors["h.0.mlp.c_fc.weight"] = zeros({d, 4 * d});
  for (i64 i = 0; i < config.num_layers; ++i) tensors["h." + std::to_string(i) + ".ln_1.weight"] = zeros({d});
  write_safetensors(path, tensors);
  for (const i64 heads : {0, 8, 12})
    CHECK_FALSE(small::contains(error_of([&] { nn::load_gpt(path, heads); }), "heads"));
}

TEST_CASE("promise 9: weights that stand as [out, in] are recognised by one shape, and the square ones with it") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  for (const bool tied : {true, false}) {
    GptConfig config = small_gpt();
    config.tied = tied;
    config.layer.activation = tied ? nn::Activation::gelu : nn::Activation::gelu_tanh;  // nanoGPT's, and minGPT's
    Gpt model = build_gpt(config);
    nn::save(static_cast<nn::Module&>(model), path);
    rewrite(path, [&](TensorFile& file) {
      TensorMap as_linear;
      for (const auto& [name, tensor] : file.tensors) {
        const bool of_layer = name.starts_with("h.") && tensor.rank() == 2;
        as_linear["_orig_mod.transformer." + name] = of_layer ? permute(tensor, {1, 0}) : tensor;
      }
      if (tied) as_linear["_orig_mod.lm_head.weight"] = file.tensors.at("wte.weight");
      file.tensors = as_linear;
    });
    Gpt loaded = nn::load_gpt(path, 2);
    config.layer.dropout = 0.1;  // which no file of weights says
    CHECK(loaded.config == config);
    check_equal(loaded, model);
    rewrite(path, [](TensorFile& file) {  // one weight as the other layout has it
      Tensor& weight = file.tensors.at("_orig_mod.transformer.h.1.mlp.c_fc.weight");
      weight = permute(weight, {1, 0});
    });
    CHECK(error_of([&] { nn::load_gpt(path, 2); }) ==
          "load " + path +
              ": the file does not fit the model; 1 of another shape or dtype: h.1.mlp.c_fc.weight is f32 [8, 12] in "
              "the file, f32 [12, 8] in the model");
  }
}

TEST_CASE("a tied weight that is stored under the name of the head alone is found") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  Gpt model = build_gpt(small_gpt());
  nn::save(model, path);
  rewrite(path, [](TensorFile& file) {
    auto table = file.tensors.extract("wte.weight");
    table.key() = "module.lm_head.weight";
    file.tensors.insert(std::move(table));
    file.metadata["module.transformer.wte.weight"] = "module.lm_head.weight";
  });
  Gpt loaded = nn::load_gpt(path);
  check_equal(loaded, model);
}

TEST_CASE("a GPT is loaded from shards, whose folder also has the config.json") {
  const TemporaryFolder folder;
  const std::string index = folder / "model.safetensors.index.json";
  Gpt model = build_gpt(small_gpt());
  nn::save(static_cast<nn::Module&>(model), folder / "whole");
  TensorMap tensors = read_safetensors(folder / "whole").tensors;
  const TensorMap first{*tensors.begin()};
  tensors.erase(tensors.begin());
  write_safetensors(folder / "1.safetensors", first);
  write_safetensors(folder / "2.safetensors", tensors);
  std::string map;
  for (const auto& [name, tensor] : tensors) map += ", \"" + name + R"(": "2.safetensors")";
  set_contents(index, R"({"weight_map": {")" + first.begin()->first + R"(": "1.safetensors")" + map + "}}");
  set_contents(folder / "config.json", R"({"n_layer": 2, "n_embd": 8, "n_positions": 6, "vocab_size": 9, "n_head": 2,)"
                                       R"( "n_inner": 12})");
  for (const std::string& path : {index, folder.path().string()}) {
    Gpt loaded = nn::load_gpt(path);
    CHECK(loaded.config.layer.num_heads == 2);
    check_equal(loaded, model);
  }
}

TEST_CASE("a model for Hugging Face has its names and layout, biases of zero, and is read again") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  for (const bool tied : {true, false}) {
    GptConfig config = small_gpt();
    config.tied = tied;
    config.layer.bias = !tied;
    Gpt model = build_gpt(config);
    nn::save_published_gpt(model, path, {{"tokens", "bytes"}});
    const TensorFile file = read_safetensors(path);
    CHECK(file.metadata.at("format") == "pt");
    CHECK(file.metadata.at("tokens") == "bytes");
    CHECK(file.tensors.contains("lm_head.weight") == !tied);
    CHECK(file.tensors.at("transformer.h.0.attn.c_attn.weight").shape() == Shape{8, 24});
    CHECK(same_bits(file.tensors.at("transformer.wte.weight"), model.token_embedding.weight.value()));
    CHECK(same_bits(file.tensors.at("transformer.h.1.ln_2.bias"), zeros({8})));
    for (const bool described : {true, false}) {  // by us in the file, and by the config.json
      if (!described) rewrite(path, [](TensorFile& changed) { changed.metadata.clear(); });
      if (!described) set_contents(folder / "config.json", nn::published_json(model.config));
      Gpt loaded = nn::load_gpt(path);
      config.layer.bias = true;
      if (!described) config.layer.dropout = 0.1;
      CHECK(loaded.config == config);
      nn::Pass pass;
      const Tensor ids = Tensor::of<i32>({2, 3}, {1, 2, 3, 8, 0, 4});
      CHECK(same_bits(loaded(ids, pass).value(), model(ids, pass).value()));
    }
    std::filesystem::remove(folder / "config.json");
  }
  GptConfig rotary = small_gpt();
  rotary.rotary = true;
  Gpt model = build_gpt(rotary);
  CHECK(small::contains(error_of([&] { nn::save_published_gpt(model, path); }), "GPT-2 has no rotary positions"));
}

TEST_CASE("a model that computes something else than a GPT-2 is not written for Hugging Face") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors";
  using nn::MultiHeadAttention;
  const auto refusal = [&](const auto& change) {
    Gpt model = build_gpt(small_gpt());
    change(model.layers[1]);
    const std::string error = error_of([&] { nn::save_published_gpt(model, path); });
    CHECK_FALSE(std::filesystem::exists(path));
    return error;
  };
  const auto changed = [&](const auto& change) {
    return refusal([&](nn::EncoderLayer& layer) { change(layer.self_attn.as<MultiHeadAttention>()); });
  };
  const std::string not_gpt2 = "the attention of h.1 is not GPT-2's";
  CHECK(small::contains(changed([](MultiHeadAttention& a) { a.own_mask = Mask::window(2); }), not_gpt2));
  CHECK(small::contains(changed([](MultiHeadAttention& a) { a.query_key_map = nn::Rotary(6, 4); }), not_gpt2));
  CHECK(small::contains(changed([](MultiHeadAttention& a) { a.score_bias = LinearBias(); }), not_gpt2));
  CHECK(small::contains(changed([](MultiHeadAttention& a) { a.num_heads = 4, a.d_k = a.d_v = 2; }), not_gpt2));
  CHECK(small::contains(changed([](MultiHeadAttention& a) { a.out_proj = ScaledIdentity(); }),
                        "the buffer h.1.attn.c_proj.scale has no place in a GPT-2"));
  CHECK(small::contains(changed([](MultiHeadAttention& a) { a.out_proj = Identity(); }),
                        "the model has no h.1.attn.c_proj.weight"));
  CHECK(small::contains(refusal([](nn::EncoderLayer& layer) { layer.self_attn = Silent(); }), not_gpt2));
  Gpt model = build_gpt(small_gpt());
  CHECK_NOTHROW(nn::save_published_gpt(model, path));
}

TEST_CASE("a config.json beside a published file says how many heads there are, which nothing in the file does") {
  const TemporaryFolder folder;
  const std::string path = folder / "model.safetensors", beside = folder / "config.json";
  const auto describe = [&](const std::string& json) { std::ofstream(beside) << json; };
  // As GPT-2's own, which has fields besides that say nothing about what is computed.
  const std::string sizes = R"("n_layer": 3, "n_embd": 128, "n_positions": 4, "n_ctx": 4, "vocab_size": 9)";
  const std::string published = R"({"model_type": "gpt2", "n_head": 4, "n_inner": 5, "layer_norm_epsilon": 1e-3, )" +
                                sizes + R"(, "activation_function": "gelu", "attn_pdrop": 0.1, "bos_token_id": 8})";
  GptConfig config{
      .vocab_size = 9, .layer = {.d_model = 128, .num_heads = 4, .d_ff = 5}, .num_layers = 3, .max_len = 4};
  config.layer.activation = nn::Activation::gelu;
  config.layer.layer_norm_eps = 1e-3;
  Gpt model = build_gpt(config);
  nn::save(static_cast<nn::Module&>(model), path);
  CHECK_THROWS_AS(nn::load_gpt(path), Error);  // without it
  describe(published);
  Gpt loaded = nn::load_gpt(path);
  CHECK(loaded.config == config);
  check_equal(loaded, model);

  const std::string refused = "load " + path + ": " + beside;
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string json = published;
    describe(json.replace(json.find(from), from.size(), to));
    return error_of([&] { nn::load_gpt(path); });
  };
  CHECK(refusal("\"n_embd\": 128", "\"n_embd\": 64") ==
        refused + " says n_embd is 64, but the columns of wte.weight are 128");
  CHECK(refusal("\"n_layer\": 3", "\"n_layer\": 2") ==
        refused + " says n_layer is 2, but the layers with a tensor ln_1.weight are 3");
  CHECK(refusal("\"n_positions\": 4", "\"n_positions\": 8") ==
        refused + " says n_positions is 8, but the rows of wpe.weight are 4");
  CHECK(refusal("\"vocab_size\": 9", "\"vocab_size\": 10") ==
        refused + " says vocab_size is 10, but the rows of wte.weight are 9");
  CHECK(refusal("\"n_inner\": 5", "\"n_inner\": null") ==
        refused + " says n_inner is 512, but the columns of h.0.mlp.c_fc.weight are 5");
  CHECK(refusal("\"n_head\"", "\"heads\"") == refused + ": has no field \"n_head\"");
  CHECK(refusal("{", "[").starts_with(refused + ": is not valid JSON: the error is in line 1, column "));

  nn::save(model, path);  // a file with a configuration of its own asks for no other
  CHECK(nn::load_gpt(path).config == config);
}

TEST_CASE("a file that does not fit is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors", load = "load " + path + ": ";
  Gpt model = build_gpt(small_gpt());
  const auto refusal = [&](const auto& change) {
    nn::save(model, path);
    rewrite(path, change);
    return error_of([&] { nn::load_gpt(path); });
  };
  CHECK(refusal([](TensorFile& file) { file.metadata.clear(); }) ==
        load +
            "does not say how many heads its attention has, on which its outputs depend: give --heads (in C++ "
            "num_heads), or put the model's config.json beside it. With d_model 8 there can be 1, 2, 4, 8");
  CHECK(refusal([](TensorFile& file) {
          file = {{{"a", zeros({2})}}, {}};
        }) == load + "holds no GPT: it has no configuration and no wte.weight of two axes");
  CHECK(refusal([](TensorFile& file) {
          file.tensors["lm_head.weight"] = zeros({9, 8});
        }) == load + "lm_head.weight and wte.weight are one parameter in the model, and differ in the file");
  CHECK(refusal([](TensorFile& file) {
          file.tensors["transformer.wte.weight"] = zeros({9, 8});
        }) == load + "wte.weight is in the file twice, as 'transformer.wte.weight' and 'wte.weight'");
  CHECK(refusal([](TensorFile& file) { file.tensors.erase("h.1.ln_2.bias"); }) ==
        load + "the file does not fit the model; 1 missing: h.1.ln_2.bias");
  const std::string turned = refusal([](TensorFile& file) {  // as a Linear would hold it
    Tensor& weight = file.tensors.at("h.0.mlp.c_fc.weight");
    weight = permute(weight, {1, 0});
  });
  CHECK(turned == load +
                      "the file does not fit the model; 1 of another shape or dtype: h.0.mlp.c_fc.weight is f32 "
                      "[12, 8] in "
                      "the file, f32 [8, 12] in the model");
  CHECK(refusal([](TensorFile& file) {
          file.metadata.clear();
          file.tensors["wte.weight"] = zeros({9, 0});
        }).starts_with(load + "gpt config: "));
  GptConfig huge = small_gpt();  // of 32 GB
  huge.layer.d_model = 1 << 15;
  huge.num_layers = 4;
  const std::string hostile = refusal([&](TensorFile& file) { file.metadata["config"] = nn::to_json(huge); });
  CHECK(hostile.find("is too small for the model it describes") != std::string::npos);
  CHECK(refusal([](TensorFile& file) { file.metadata["config"] = "{}"; }) ==
        load + "gpt config: vocab_size must be positive, not 0");
}
