// Chapter 9. GPTs in files: ours come back, other programs' names are understood, what does not fit is refused.
#include "nn/files/gpt_files.h"

#include <doctest/doctest.h>

#include <fstream>

#include "core/tensor_ops.h"
#include "nn/files/files.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Gpt;
using nn::GptConfig;
using small::error_of;

namespace {

GptConfig tiny() {
  return {.vocab_size = 9,
          .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0},
          .num_layers = 2,
          .max_len = 6};
}

Gpt build(const GptConfig& config) {
  Rng rng(1);
  return Gpt(config, rng);
}

void check_equal(Gpt& a, Gpt& b) {
  const Parameters p = a.parameters(), q = b.parameters();
  REQUIRE(p.size() == q.size());
  for (size_t i = 0; i < p.size(); ++i) {
    CHECK(p[i].name == q[i].name);
    CHECK(same_bits(p[i].value.value(), q[i].value.value()));
  }
}

// The file of a model, changed.
template <class Change>
void rewrite(const std::string& path, const Change& change) {
  TensorFile file = read_safetensors(path);
  change(file);
  write_safetensors(path, file.tensors, file.metadata);
}

}  // namespace

TEST_CASE("a saved model comes back from its file alone, with its configuration and other metadata") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  for (const bool tied : {true, false}) {
    GptConfig config = tiny();
    config.tied = config.rotary = config.query_key_norm = tied;
    Gpt model = build(config);
    nn::save_gpt(model, path, {{"alphabet", "abc"}});
    Gpt loaded = nn::load_gpt(path);
    CHECK(loaded.config == config);
    check_equal(loaded, model);
    CHECK(read_safetensors_metadata(path).at("alphabet") == "abc");
    CHECK(read_safetensors(path).tensors.contains("lm_head.weight") == !tied);
  }
}

TEST_CASE("weights of layers stand in the file as [in, out], embeddings as they are") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  Gpt model = build(tiny());
  nn::save_gpt(model, path);
  const TensorMap file = read_safetensors(path).tensors;
  CHECK(file.at("h.0.attn.c_attn.weight").shape() == Shape{8, 24});
  CHECK(file.at("h.0.mlp.c_fc.weight").shape() == Shape{8, 12});
  CHECK(file.at("h.1.mlp.c_proj.weight").shape() == Shape{12, 8});
  CHECK(same_bits(file.at("h.1.attn.c_proj.weight"),
                  permute(model.layers[1].self_attn.as<nn::MultiHeadAttention>().out_proj.weight.value(), {1, 0})));
  CHECK(same_bits(file.at("wte.weight"), model.token_embedding.weight.value()));
}

TEST_CASE("a prefix, masks and a copy of the table are understood") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  Gpt model = build(tiny());
  nn::save_gpt(model, path);
  rewrite(path, [](TensorFile& file) {
    TensorMap renamed;
    for (const auto& [name, tensor] : file.tensors) renamed["transformer." + name] = tensor;
    renamed["transformer.h.0.attn.bias"] = zeros({1, 1, 6, 6});
    renamed["transformer.h.0.attn.masked_bias"] = zeros({});
    renamed["lm_head.weight"] = file.tensors.at("wte.weight");
    file = {renamed, {}};
  });
  Gpt loaded = nn::load_gpt(path, tiny());
  check_equal(loaded, model);
}

TEST_CASE("without a configuration the sizes follow from the shapes, heads being of 64 columns") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  for (const bool other : {false, true}) {
    GptConfig config{
        .vocab_size = 9, .layer = {.d_model = 128, .num_heads = 2, .d_ff = 5}, .num_layers = 3, .max_len = 4};
    config.layer.bias = config.tied = !other;
    Gpt model = build(config);
    nn::save(model, path);
    Gpt loaded = nn::load_gpt(path);
    CHECK(loaded.config == config);
    check_equal(loaded, model);
  }
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
  Gpt model = build(config);
  nn::save(model, path);
  CHECK(nn::load_gpt(path).config.layer.num_heads == 2);  // the guess without it
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

  nn::save_gpt(model, path);  // a file with a configuration of its own asks for no other
  CHECK(nn::load_gpt(path).config == config);
}

TEST_CASE("a file that does not fit is refused") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors", load = "load " + path + ": ";
  Gpt model = build(tiny());
  const auto refusal = [&](const auto& change) {
    nn::save_gpt(model, path);
    rewrite(path, change);
    return error_of([&] { nn::load_gpt(path); });
  };
  CHECK(refusal([](TensorFile& file) { file.metadata.clear(); }) ==
        load + "has no configuration, and d_model (8) is not a multiple of 64, GPT-2's size of a head");
  CHECK(refusal([](TensorFile& file) {
          file = {{{"a", zeros({2})}}, {}};
        }) == load + "holds no GPT: it has no configuration and no wte.weight of two axes");
  CHECK(refusal([](TensorFile& file) {
          file.tensors["lm_head.weight"] = zeros({9, 8});
        }) == load + "lm_head.weight and wte.weight are one parameter in the model, and differ in the file");
  CHECK(refusal([](TensorFile& file) {
          file.tensors["transformer.wte.weight"] = zeros({9, 8});
        }) == load + "wte.weight is in the file twice, with and without the prefix transformer.");
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
  GptConfig huge = tiny();  // of 32 GB
  huge.layer.d_model = 1 << 15;
  huge.num_layers = 4;
  const std::string hostile = refusal([&](TensorFile& file) { file.metadata["config"] = nn::to_json(huge); });
  CHECK(hostile.find("is too small for the model it describes") != std::string::npos);
  CHECK(refusal([](TensorFile& file) { file.metadata["config"] = "{}"; }) ==
        load + "gpt config: vocab_size must be positive, not 0");
}

TEST_CASE("a configuration that nests 50,000 times is refused in one line that names its file") {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors", beside = folder / "config.json";
  const std::string deep = R"({"d_model":)" + std::string(50'000, '[') + std::string(50'000, ']') + "}";
  Gpt model = build(tiny());
  nn::save_gpt(model, path);
  rewrite(path, [&](TensorFile& file) { file.metadata["config"] = deep; });
  CHECK(error_of([&] { nn::load_gpt(path); }) ==
        "load " + path + ": gpt config: has more than 32 nested lists and objects");
  rewrite(path, [&](TensorFile& file) { file.metadata.clear(); });
  set_contents(beside, deep);
  CHECK(error_of([&] { nn::load_gpt(path); }) ==
        "load " + path + ": " + beside + ": has more than 32 nested lists and objects");
  set_contents(beside, R"({"n_head": 2, "n_layer": 2, "n_embd": 8, "n_positions": 6, "vocab_size": 9, "n_inner": )" +
                           deep + "}");
  CHECK(error_of([&] { nn::load_gpt(path); }).find("has more than 32 nested lists") != std::string::npos);
}
