// Chapter 7. Equal to PyTorch: files with GPT-2's names load unchanged, and give its logits, loss and gradients.
#include "nn/models/gpt.h"

#include "apps/data/byte_pairs.h"
#include "autograd/ops.h"
#include "nn/files/gpt_files.h"
#include "nn/generate/beam_search.h"
#include "nn/generate/decoding.h"
#include "tests/core/temporary_folder.h"
#include "tests/torch/fixture.h"

using namespace orrery;
using namespace orrery::torch_parity;

namespace {

// The model of tests/fixtures/gpt2.py.
nn::GptConfig config_of(const std::string& name) {
  nn::GptConfig config{.vocab_size = 13,
                       .layer = {.d_model = 12, .num_heads = 3, .d_ff = 48, .dropout = 0},
                       .num_layers = 2,
                       .max_len = 8};
  if (name == "gpt2_head" || name == "gpt2_linear") {
    config.layer.bias = false;
    config.layer.activation = nn::Activation::gelu;
  }
  return config;
}

struct Run {
  Tensor logits, loss;
  TensorMap gradients;
};

Run run(nn::Gpt& model, const Case& c) {
  nn::Pass pass = nn::Pass::training(1, 1);
  const Variable logits = model(c.at("ids"), pass), loss = cross_entropy(logits, c.at("targets"));
  backward(loss);
  Run result{logits.value(), loss.value(), {}};
  for (NamedParameter& p : nn::parameters_on_disk(model)) {
    result.gradients[p.name] = p.value.gradient().clone();
    p.value.clear_gradient();
  }
  return result;
}

// Gradients of a weight that files hold as [in, out] are compared the way the file has them.
Tensor as_in_file(const std::string& file, const std::string& name, const Tensor& gradient) {
  const bool turned = file != "gpt2_linear" && name.starts_with("h.") && gradient.rank() == 2;
  return turned ? permute(gradient, {1, 0}) : gradient;
}

}  // namespace

TEST_CASE("promise 9: a file of GPT-2's names loads, and has PyTorch's logits, loss and gradients") {
  for (const std::string name : {"gpt2", "gpt2_head", "gpt2_f16", "gpt2_bf16", "gpt2_linear"}) {
    INFO(name);
    const std::string path = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/" + name + ".safetensors";
    const Case c("gpt2_run", name);
    nn::Gpt model = nn::load<nn::Gpt>(path, config_of(name));
    const Run single = run(model, c);
    nn::to(model, f64);
    const Run exact = run(model, c);
    CHECK(difference(exact.logits, c.at("logits")) == "");
    CHECK(difference(exact.loss, c.at("loss")) == "");
    const TensorMap expected = c.role("gradient");
    CHECK(expected.size() == exact.gradients.size());
    double limit = 0;
    for (const auto& gradient : exact.gradients) limit = std::max(limit, 1e-6 * largest(gradient.second));
    for (const auto& gradient : exact.gradients) {
      INFO("gradient of ", gradient.first);
      REQUIRE(expected.contains(gradient.first));
      CHECK(difference(as_in_file(name, gradient.first, gradient.second), expected.at(gradient.first)) == "");
      CHECK(largest(single.gradients.at(gradient.first).to(f64) - gradient.second) <= limit);
    }
    CHECK(largest(single.logits.to(f64) - exact.logits) <= 1e-6 * largest(exact.logits));
  }
}

TEST_CASE("promise 9: a folder of Hugging Face's GPT-2 has its tokens and logits, and writes what it writes") {
  const std::string folder = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/gpt2/";
  const TensorMap expected = read_safetensors(folder + "expected.safetensors").tensors;
  const auto tokens_of = [](const Tensor& t) { return std::vector<i32>(t.data<i32>(), t.data<i32>() + t.count()); };
  const BytePairs pairs = BytePairs::read(folder + "vocab.json", folder + "merges.txt");
  const std::vector<std::string> texts{"the dog sees the cat",
                                       "It's 3 caf\u00e9s,  isn't it?\n\n \u4f60\u597d\u00a0\U0001f600 ", "\n"};
  for (size_t i = 0; i < texts.size(); ++i)
    CHECK(pairs.ids(texts[i]) == tokens_of(expected.at("ids." + std::to_string(i))));
  nn::Gpt model = nn::load_gpt(folder);
  CHECK(model.config.layer.num_heads == 4);
  const std::vector<i32> prompt = pairs.ids(texts[0]);
  const i64 T = std::ssize(prompt);
  nn::Pass pass = nn::Pass::inference();
  const Tensor logits = model(Tensor::of<i32>({1, T}, prompt), pass).value().reshape({T, -1});
  CHECK(largest(logits.to(f64) - expected.at("logits")) < 1e-5);
  nn::to(model, f64);
  for (const std::string name : {"plain", "penalty", "ngram", "both"}) {
    CAPTURE(name);
    const nn::Constraints constraints{.repetition_penalty = name == "penalty" ? 1.5
                                                            : name == "both"  ? 1.2
                                                                              : 1.0,
                                      .no_repeat_ngram = name == "ngram"  ? 2
                                                         : name == "both" ? 3
                                                                          : 0};
    std::vector<i32> written;
    Rng unused(1);
    const auto take = [&](i32 token) {
      written.push_back(token);
      return true;
    };
    nn::generate(model, prompt, 12, {.temperature = 0}, unused, take, constraints);
    CHECK(written == tokens_of(expected.at("greedy." + name)));
    if (!expected.contains("beam." + name)) continue;
    nn::BeamOptions search{.beam = 4, .n_best = 3, .constraints = constraints, .bos = prompt.back(), .eos = -1};
    search.constraints.prompt = prompt;
    const auto decoder = nn::stepwise_decoder(model, std::span(prompt).first(prompt.size() - 1), 32);
    const auto found = nn::n_best_search(*decoder, std::vector<i64>{12}, search);
    REQUIRE(found.at(0).size() == 3);
    for (i64 i = 0; i < 3; ++i) {
      CHECK(found[0][static_cast<size_t>(i)].tokens == tokens_of(expected.at("beam." + name).rows(i, i + 1)));
      CHECK(std::abs(found[0][static_cast<size_t>(i)].score - expected.at("scores." + name).data<float>()[i]) < 1e-5);
    }
  }
}

TEST_CASE("nanoGPT's own file says everything but the number of heads: its layout, and with it the exact GELU") {
  const std::string path = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/gpt2_linear.safetensors";
  nn::GptConfig config = nn::load_gpt(path, 3).config;
  config.layer.dropout = 0;  // which no file without a configuration says
  CHECK(config == config_of("gpt2_linear"));
  CHECK_THROWS_AS(nn::load_gpt(path), Error);
}

TEST_CASE("promise 9: what we save has the names and the layout of that file") {
  const std::string path = std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/gpt2.safetensors";
  nn::Gpt model = nn::load<nn::Gpt>(path, config_of("gpt2"));
  const TensorMap theirs = read_safetensors(path).tensors;
  const TemporaryFolder folder;
  nn::save(model, folder / "ours.safetensors");
  const TensorMap ours = read_safetensors(folder / "ours.safetensors").tensors;
  CHECK(ours.size() + 2 * 2 == theirs.size());  // theirs has masks, two for each of two layers
  for (const auto& tensor : ours) {
    INFO(tensor.first);
    REQUIRE(theirs.contains(tensor.first));
    CHECK(same_bits(tensor.second, theirs.at(tensor.first)));
  }
}
