// Chapter 8. Promise 1: two hundred steps of training with dropout end in the same bits for any number of threads.
#include <variant>

#include "autograd/ops.h"
#include "core/files/hash.h"
#include "core/tensor_ops.h"
#include "nn/models/gpt.h"
#include "nn/models/transformer.h"
#include "optim/optim.h"
#include "tests/core/support.h"
#include "tests/promises/rerun.h"

using namespace orrery;
using namespace orrery::promises;

namespace {

struct Hashes {
  std::string parameters, optimiser, losses;
  bool operator==(const Hashes&) const = default;
};

// Trains `model` for `steps` steps; loss_of(step) builds its loss.
template <class Model, class Loss> Hashes train(Model& model, i64 d_model, i64 steps, const Loss& loss_of) {
  optim::Adam adam(model.parameters(), {.beta2 = 0.98, .eps = 1e-9});
  Fingerprint parameters, optimiser, losses;
  for (i64 step = 1; step <= steps; ++step) {
    const Variable loss = loss_of(step);
    backward(loss);
    optim::clip_grad_norm(adam.parameters(), 1.0);
    adam.step(optim::noam(step, d_model, 50));
    losses.add(loss.value());
  }
  for (const NamedParameter& p : adam.parameters()) parameters.add(p.value.value());
  for (const auto& [name, tensor] : adam.state()) optimiser.add(tensor);
  return {parameters.hex(), optimiser.hex(), losses.hex()};
}

// An encoder-decoder, or a GPT, which has no source.
struct Training {
  const char* name;
  std::variant<nn::TransformerConfig, nn::GptConfig> config;
  i64 batch, source_length, target_length, steps;
};

// Odd sizes, and loops long enough that logits, inner activations and products are cut into several chunks and tiles.
std::vector<Training> trainings() {
  const nn::TransformerConfig base{.src_vocab_size = 61,
                                   .tgt_vocab_size = 211,
                                   .layer = {.d_model = 33, .num_heads = 3, .d_ff = 131, .dropout = 0.1},
                                   .num_encoder_layers = 1,
                                   .num_decoder_layers = 1,
                                   .max_len = 20};
  nn::TransformerConfig shared = base;
  shared.src_vocab_size = shared.tgt_vocab_size = 127;
  shared.share_embeddings = shared.layer.norm_first = shared.final_norm = true;
  shared.positions = nn::Positions::learned;
  shared.layer.activation = nn::Activation::gelu;
  shared.layer.d_k = 7;
  shared.layer.d_v = 5;
  const nn::GptConfig gpt{
      .vocab_size = 127, .layer = {.d_model = 36, .num_heads = 3, .d_ff = 131}, .num_layers = 2, .max_len = 43};
  nn::GptConfig turned = gpt;
  turned.rotary = turned.query_key_norm = true;
  return {{"post-norm", base, 9, 15, 11, 200},
          {"pre-norm, shared embeddings", shared, 11, 13, 17, 200},
          {"GPT", gpt, 7, 0, 41, 200},
          {"GPT, rotary, normalised queries and keys", turned, 7, 0, 41, 200}};
}

// i32 [batch, length]: rows of different lengths, padded with 0.
Tensor sentences(i64 batch, i64 length, i64 words, Rng& rng) {
  Tensor ids = randint(1, words, {batch, length}, rng);
  for (i64 b = 0; b < batch; ++b) {
    const i64 kept = rng.integer(1, length + 1);
    std::fill(ids.write<i32>() + b * length + kept, ids.write<i32>() + (b + 1) * length, 0);
  }
  return ids;
}

Hashes train(const Training& t, const nn::TransformerConfig& config) {
  Rng weights(1), data(2);
  nn::Transformer model(config, weights);
  return train(model, config.layer.d_model, t.steps, [&](i64 step) {
    const Tensor source = sentences(t.batch, t.source_length, config.src_vocab_size, data);
    const Tensor target = sentences(t.batch, t.target_length + 1, config.tgt_vocab_size, data);
    nn::Pass pass = nn::Pass::training(3, step);
    return model.loss(source, slice(target, 1, 0, -1), slice(target, 1, 1), pass,
                      {.ignore_index = 0, .label_smoothing = 0.1});
  });
}

Hashes train(const Training& t, const nn::GptConfig& config) {
  Rng weights(1), data(2);
  nn::Gpt model(config, weights);
  return train(model, config.layer.d_model, t.steps, [&](i64 step) {
    const Tensor text = randint(0, config.vocab_size, {t.batch, t.target_length + 1}, data);
    nn::Pass pass = nn::Pass::training(3, step);
    return model.loss(slice(text, 1, 0, -1), slice(text, 1, 1), pass);
  });
}

Hashes train(const Training& t, int threads) {
  const small::Threads scope(threads);
  return std::visit([&](const auto& config) { return train(t, config); }, t.config);
}

}  // namespace

TEST_CASE("slow: promise 1: parameters, moments and losses have equal bits for 1, 2, 3, 4 and 8 threads") {
  if (checked_with_sleeping_threads("slow: promise 1: parameters*")) return;
  for (const Training& t : trainings()) {
    CAPTURE(t.name);
    const Hashes expected = train(t, 1);
    for (const int threads : {2, 3, 4, 8}) {
      CAPTURE(threads);
      const Hashes got = train(t, threads);
      CHECK(got.parameters == expected.parameters);
      CHECK(got.optimiser == expected.optimiser);
      CHECK(got.losses == expected.losses);
    }
    // The hashes notice even a missing step.
    Training shorter = t;
    --shorter.steps;
    CHECK(train(shorter, 1) != expected);
  }
}

TEST_CASE("slow: promise 1: the program's hash does not depend on --threads") {
  for (const std::string precision : {"f32", "bf16"}) {
    std::string expected;
    for (const std::string threads : {"1", "2", "4"}) {
      CAPTURE(threads);
      const program::Result toy = run("", program::quoted_program + "toy --steps 20 --hash --precision " + precision +
                                              " --threads " + threads + " 2>/dev/null");
      CHECK(toy.exit_code == 0);
      const std::string hash = program::hash_in(toy.text);
      REQUIRE(hash != "");
      if (expected.empty()) expected = hash;
      CHECK(hash == expected);
    }
  }
}
