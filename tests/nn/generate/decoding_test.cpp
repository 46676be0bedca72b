// Chapter 7. Greedy decoding: a model made by hand, padding of ended rows, the same answer as step by step without a
// cache; and a GPT that writes on.
#include "nn/generate/decoding.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "nn/models/gpt.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Transformer;

namespace {

constexpr i32 pad = 0, bos = 1, eos = 2;

// A model whose next token depends on the last one alone: `follows[t]` comes after t. Token t is the t-th unit vector
// times 100 (positions no longer matter), every sub-layer adds 0, and row follows[t] of the generator looks for t.
Transformer chain(const std::vector<i32>& follows, i32 pad_id = pad) {
  const i64 K = static_cast<i64>(follows.size());
  Rng rng(1);
  Transformer model({.src_vocab_size = K,
                     .tgt_vocab_size = K,
                     .layer = {.d_model = K, .num_heads = 1, .d_ff = 4},
                     .num_encoder_layers = 1,
                     .num_decoder_layers = 1,
                     .max_len = 10,
                     .pad_id = pad_id},
                    rng);
  for (NamedParameter& p : model.parameters()) {
    if (p.name.find("norm") == std::string::npos || p.name.ends_with("bias")) fill(p.value.mutable_value(), 0);
  }
  float* embedding = model.tgt_embed.weight.mutable_value().write<float>();
  float* generator = model.generator.weight.mutable_value().write<float>();
  for (i64 t = 0; t < K; ++t) {
    embedding[t * K + t] = 100;
    generator[follows[static_cast<size_t>(t)] * K + t] = 1;
  }
  return model;
}

std::vector<i32> tokens(const Tensor& x) { return {x.data<i32>(), x.data<i32>() + x.count()}; }

}  // namespace

TEST_CASE("rows agree with one step at a time alone, and end with pad_id, or with eos if the model has no pad_id") {
  for (const i32 pad_id : {pad, -1}) {
    Rng rng(11);
    Transformer model({.src_vocab_size = 6,
                       .tgt_vocab_size = 6,
                       .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12},
                       .num_encoder_layers = 1,
                       .num_decoder_layers = 1,
                       .max_len = 8,
                       .pad_id = pad_id},
                      rng);
    make_noisy(model, 87);  // rows end after 0 to 7 tokens
    scale_in_place(model.decoder.layers[0].multihead_attn.as<nn::MultiHeadAttention>().out_proj.weight.mutable_value(),
                   5.0);
    const Tensor source = randint(3, 6, {12, 5}, rng);
    const Tensor answers = greedy_decode(model, source, {.bos = bos, .eos = eos, .max_len = 7});
    i64 longest = 0, shortest = 99;
    for (i64 row = 0; row < 12; ++row) {
      std::vector<i32> expected;
      Tensor target = full({1, 1}, bos, Dtype::i32);
      nn::Pass pass;
      while (expected.size() < 7 && (expected.empty() || expected.back() != eos)) {
        const Tensor one = source.rows(row, row + 1);
        const Tensor logits =
            model(one, target, {model.padding(one), Mask::causal(), model.padding(one)}, pass).value();
        const Tensor next = argmax(slice(logits, 1, -1));
        expected.push_back(next.data<i32>()[0]);
        target = concat({target, next}, 1);
      }
      longest = std::max(longest, static_cast<i64>(expected.size()));
      shortest = std::min(shortest, static_cast<i64>(expected.size()));
      expected.resize(static_cast<size_t>(answers.size(1)), pad_id < 0 ? eos : pad_id);
      CHECK(tokens(answers.rows(row, row + 1)) == expected);
    }
    CHECK(answers.size(1) == longest);
    CHECK(shortest < longest);
  }
}

TEST_CASE("nothing is recorded, and limits are checked") {
  const Transformer model = chain({0, 2, 0, 0});
  const Tensor source = full({1, 2}, 3, Dtype::i32);
  {
    NothingRecorded observer;
    const ObserverScope scope(observer);
    greedy_decode(model, source, {.max_len = 10});
  }
  CHECK(gradients_are_recorded());
  CHECK_THROWS_WITH_AS(greedy_decode(model, source, {.max_len = 11}),
                       doctest::Contains("max_len must be from 1 to 10, the model's positions, not 11"), Error);
  CHECK_THROWS_AS(greedy_decode(model, source, {.max_len = 0}), Error);
  Transformer broken = chain({0, 2, 0, 0});
  broken.generator.weight.mutable_value().write<float>()[3] = NAN;
  CHECK_THROWS_WITH_AS(greedy_decode(broken, source, {.max_len = 3}), doctest::Contains("a logit is NaN"), Error);
}

namespace {

nn::Gpt noisy_gpt() {
  Rng rng(21);
  nn::Gpt model({.vocab_size = 9, .layer = {.d_model = 16, .num_heads = 2, .d_ff = 24}, .num_layers = 2, .max_len = 8},
                rng);
  make_noisy(model, 22);
  return model;
}

std::vector<i32> generated(const nn::Gpt& model, const std::vector<i32>& prompt, i64 count,
                           const nn::SamplingOptions& sampling, u64 seed = 1) {
  std::vector<i32> result;
  Rng rng(seed);
  generate(model, prompt, count, sampling, rng, [&](i32 token) {
    result.push_back(token);
    return true;
  });
  return result;
}

}  // namespace

TEST_CASE("greedy decoding and sampling keep to constraints: a prefix, no n-gram twice, what is written is penalised") {
  const Transformer model = chain({0, 4, 0, 4, 3});  // bos -> 4 -> 3 -> 4 -> ...
  const auto greedy = [&](const nn::Constraints& constraints) {
    return tokens(greedy_decode(model, full({1, 2}, 3, Dtype::i32), {.max_len = 5, .constraints = constraints}));
  };
  CHECK(greedy({.prefixes = {{3}}}) == std::vector<i32>{3, 4, 3, 4, 3});
  const std::vector<i32> once = greedy({.no_repeat_ngram = 1});
  CHECK(std::set<i32>(once.begin(), once.end()).size() == once.size());
  CHECK(once[0] == 4);
  CHECK(once[1] == 3);
  const auto refused = [&](const nn::Constraints& constraints, const char* message) {
    CHECK_THROWS_WITH_AS(greedy(constraints), doctest::Contains(message), Error);
  };
  refused({.repetition_penalty = 0}, "the repetition penalty must be above 0 and finite, not 0");
  refused({.prefixes = {{3}, {3}}}, "2 prefixes are given for 1 sequences");
  refused({.prefixes = {{3, 4, 3, 4, 3}}}, "a prefix of 5 tokens leaves no room in a sequence of at most 5");
  refused({.prefixes = {{9}}}, "a prefix has token 9, which is none of the model's 5");
  const nn::Gpt gpt = noisy_gpt();
  const std::vector<i32> prompt{3, 1, 4, 1};
  for (const nn::Constraints& constraints :
       {nn::Constraints{.no_repeat_ngram = 2}, nn::Constraints{.repetition_penalty = 3.0},
        nn::Constraints{.repetition_penalty = 1.1, .no_repeat_ngram = 3}}) {
    std::vector<i32> written = prompt;
    Rng rng(5), same(5);
    const nn::SamplingOptions sampling{.temperature = 0.5};
    const auto take = [&](i32 token) {
      written.push_back(token);
      return true;
    };
    generate(gpt, prompt, 5, sampling, rng, take, constraints);
    for (size_t length = prompt.size(); length < written.size() && length < 8; ++length) {
      const std::vector<i32> before(written.begin(), written.begin() + static_cast<std::ptrdiff_t>(length));
      nn::Pass pass;
      Tensor x = slice(gpt(Tensor::of<i32>({1, std::ssize(before)}, before), pass).value(), 1, -1).reshape({9});
      for (i32 k = 0; k < 9; ++k) {
        if (std::find(before.begin(), before.end(), k) != before.end())
          x(k) = x(k) > 0 ? x(k) / constraints.repetition_penalty : x(k) * constraints.repetition_penalty;
        for (i64 n = constraints.no_repeat_ngram, at = 0; n > 0 && at + n <= std::ssize(before); ++at)
          if (std::equal(before.end() - (n - 1), before.end(), before.begin() + at) &&
              before[static_cast<size_t>(at + n - 1)] == k)
            x(k) = -INFINITY;
      }
      CHECK(sample(x, sampling, same) == written[length]);
    }
  }
}

TEST_CASE("a GPT writes the tokens that it would write without a cache") {
  const nn::Gpt model = noisy_gpt();
  for (const nn::SamplingOptions& sampling :
       {nn::SamplingOptions{.temperature = 0}, nn::SamplingOptions{.temperature = 2, .top_k = 5}}) {
    const std::vector<i32> prompt{3, 1, 4};
    const std::vector<i32> written = generated(model, prompt, 6, sampling);
    std::vector<i32> all = prompt;
    Rng rng(1);
    nn::Pass pass;
    while (all.size() < 9) {
      const Tensor ids = Tensor::of<i32>({1, static_cast<i64>(all.size())}, all);
      all.push_back(sample(slice(model(ids, pass).value(), 1, -1).reshape({9}), sampling, rng));
    }
    CHECK(written == std::vector<i32>(all.begin() + 3, all.end()));
  }
}

TEST_CASE("beyond its positions a GPT goes on from the newer half, and long prompts are cut") {
  const nn::Gpt model = noisy_gpt();
  const nn::SamplingOptions likeliest{.temperature = 0};
  const std::vector<i32> prompt{3, 1, 4, 1, 5, 2, 6, 5, 3, 5};
  const std::vector<i32> written = generated(model, prompt, 30, likeliest);
  CHECK(written.size() == 30);
  const std::vector<i32> last_eight(prompt.end() - 8, prompt.end());
  CHECK(generated(model, last_eight, 30, likeliest) == written);
  // All 8 positions are taken by the prompt, so that the second token follows from the last 4 tokens alone.
  const std::vector<i32> newer{prompt[7], prompt[8], prompt[9], written[0]};
  CHECK(generated(model, newer, 1, likeliest)[0] == written[1]);
}

TEST_CASE("a seed fixes what is written, and the reader may stop it") {
  const nn::Gpt model = noisy_gpt();
  CHECK(generated(model, {1}, 40, {}, 5) == generated(model, {1}, 40, {}, 5));
  CHECK(generated(model, {1}, 40, {.temperature = 3}, 5) != generated(model, {1}, 40, {.temperature = 3}, 6));
  int calls = 0;
  Rng rng(1);
  generate(model, {1}, 40, {}, rng, [&](i32) { return ++calls < 3; });
  CHECK(calls == 3);
  CHECK_THROWS_WITH_AS(generated(model, {}, 1, {}), "generate: needs a prompt of at least one token", Error);
  // Before anything is computed: the prompt holds a token that the model does not have.
  CHECK_THROWS_WITH_AS(generated(model, {99}, 0, {.top_p = 2}), doctest::Contains("top_p must be in (0, 1]"), Error);
  CHECK_THROWS_WITH_AS(generated(model, {1}, -1, {}), "generate: cannot write -1 tokens", Error);
}
