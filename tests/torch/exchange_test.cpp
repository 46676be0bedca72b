// Chapter 9. Files to and from PyTorch: a state_dict of torch.nn.Transformer loads by name, and ours has its names.
//
// tests/fixtures/exchange_with_pytorch.py shows the other end: it lets the second test keep its file, and loads it in
// PyTorch.
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "nn/models/stack.h"
#include "nn/models/transformer.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

namespace {

constexpr i64 d_model = 8;
const std::string state_dict = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/state_dict.safetensors";

// torch.nn.Transformer has no embeddings and no generator, and always has final norms.
nn::Transformer make_model(u64 seed) {
  Rng rng(seed);
  return nn::Transformer({.src_vocab_size = 11,
                          .tgt_vocab_size = 11,
                          .layer = {.d_model = d_model, .num_heads = 2, .d_ff = 16, .dropout = 0},
                          .num_encoder_layers = 2,
                          .num_decoder_layers = 2,
                          .final_norm = true},
                         rng);
}

}  // namespace

TEST_CASE("promise 9: a state_dict of torch.nn.Transformer loads by name, and computes what PyTorch computes") {
  nn::Transformer model = make_model(1);
  nn::Stacks stacks(model.encoder, model.decoder);
  nn::load(stacks, state_dict);
  const TensorMap file = read_safetensors(state_dict).tensors;
  CHECK(same_bits(model.encoder.layers[1].self_attn.as<nn::MultiHeadAttention>().in_proj.weight.value(),
                  file.at("encoder.layers.1.self_attn.in_proj_weight")));
  nn::to(model, f64);
  const Case c("state_dict_run", "run");
  const auto input = [&](const std::string& name) { return constant(c.at("input." + name).to(f64)); };
  nn::Pass pass;
  const Variable y = stacks(input("source"), input("target"), Mask(), Mask::causal(), pass);
  CHECK(difference(y.value(), c.at("output")) == "");
}

TEST_CASE("promise 9: a file of ours has the names, shapes and dtypes of torch.nn.Transformer's state_dict") {
  const TemporaryFolder temporary;
  const char* kept = std::getenv("ORRERY_EXCHANGE");  // a folder in which the files stay, for the script
  const std::string folder = kept ? kept : temporary.path().string();

  nn::Transformer model = make_model(2);
  nn::Stacks stacks(model.encoder, model.decoder);
  nn::save(stacks, folder + "/ours.safetensors", {{std::string(nn::config_key), nn::to_json(model.config)}});
  const TensorMap ours = read_safetensors(folder + "/ours.safetensors").tensors;
  const TensorMap theirs = read_safetensors(state_dict).tensors;
  CHECK(ours.size() == theirs.size());
  for (const auto& expected : theirs) {
    INFO(expected.first);
    REQUIRE(ours.contains(expected.first));
    const Tensor& tensor = ours.at(expected.first);
    CHECK(tensor.shape() == expected.second.shape());
    CHECK(tensor.dtype() == expected.second.dtype());
  }

  Rng rng(3);
  const Tensor source = randn({2, 5, d_model}, rng, f64), target = randn({2, 4, d_model}, rng, f64);
  nn::to(model, f64);
  nn::Pass pass;
  const Variable y = stacks(constant(source), constant(target), Mask(), Mask::causal(), pass);
  CHECK(largest(y.value()) < INFINITY);
  write_safetensors(folder + "/ours_run.safetensors", {{"source", source}, {"target", target}, {"output", y.value()}});
}

TEST_CASE("the script that lets PyTorch read our file runs the test that writes it") {
  const std::string text = contents(ORRERY_SOURCE_DIR "/tests/fixtures/exchange_with_pytorch.py");
  std::smatch test, filter;
  REQUIRE(std::regex_search(text, test, std::regex("test = \"([^\"]+)\"")));
  REQUIRE(std::regex_search(text, filter, std::regex("--test-case=([^{]*)\\{")));
  // In a filter of doctest, a comma separates patterns, and ? stands for any character.
  const std::string name = std::regex_replace(test[1].str(), std::regex(","), "?");
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const program::Result count = program::shell("'" + self + "' --count --test-case=\"" + filter[1].str() + name + "\"");
  CHECK_MESSAGE(program::contains(count.text, "passing the current filters: 1"), count.text);
}
