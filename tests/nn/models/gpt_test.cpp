// Chapter 7. Gpt: composition, initialisation, names, errors.
#include "nn/models/gpt.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "nn/attention/query_key_norm.h"
#include "nn/attention/rotary.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Gpt;
using nn::GptConfig;
using nn::Pass;

namespace {

const Tensor ids = Tensor::of<i32>({2, 4}, {3, 4, 5, 6, 7, 8, 0, 0});
const Tensor next = Tensor::of<i32>({2, 4}, {4, 5, 6, 7, 8, 0, 0, -100});  // the token after each

Tensor logits_of(const Gpt& model, const Tensor& tokens) {
  Pass pass;
  return model(tokens, pass).value();
}

double deviation(const Variable& x) {
  return std::sqrt(sum_of_squares(x.value()) / static_cast<double>(x.value().count()));
}

}  // namespace

TEST_CASE("a GPT's loss is the cross entropy of its logits, tied or not") {
  for (const bool tied : {true, false}) {
    GptConfig config = small_gpt();
    config.tied = tied;
    Gpt model = build_gpt(config);
    Pass pass;
    const CrossEntropyOptions options{.label_smoothing = 0.1};
    const double expected = cross_entropy(model(ids, pass), next, options).item();
    CHECK(model.loss(ids, next, pass, options).item() == doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("a recorder has the weights of every layer's attention") {
  const Gpt model = build_gpt(small_gpt());
  nn::AttentionRecorder seen;
  Pass pass;
  pass.recorder = &seen;
  model(ids, pass);
  CHECK(seen.all.size() == 2);
  for (const nn::EncoderLayer& layer : model.layers) CHECK(seen.of(*layer.self_attn).shape() == Shape{2, 2, 4, 4});
}

TEST_CASE("rotary turns queries and keys; query_key_norm normalises them, after the turn if there is one") {
  for (const bool rotary : {true, false}) {
    for (const bool norm : {true, false}) {
      CAPTURE(rotary);
      CAPTURE(norm);
      GptConfig config = small_gpt();
      config.rotary = rotary;
      config.query_key_norm = norm;
      Gpt model = build_gpt(config), plain = build_gpt(small_gpt());
      const Tensor unchanged = logits_of(plain, ids);
      for (nn::EncoderLayer& layer : plain.layers) {
        auto& map = layer.self_attn.as<nn::MultiHeadAttention>().query_key_map;
        if (rotary) map = nn::Rotary(6, 4);
        if (norm) map = nn::QueryKeyNorm(6, std::move(map));
      }
      CHECK(same_bits(logits_of(model, ids), logits_of(plain, ids)));
      CHECK(same_bits(logits_of(model, ids), unchanged) == (!rotary && !norm));
      CHECK(model.parameter_count() == config.parameter_count());
      CHECK(model.parameter_count() == build_gpt(small_gpt()).parameter_count() + (norm ? 2 : 0));
    }
  }
}

TEST_CASE(
    "the model is tokens + positions, layers, a norm and the table once more; the norms' eps is the configuration's") {
  GptConfig config = small_gpt();
  config.layer.layer_norm_eps = 0.5;
  Gpt model = build_gpt(config);
  make_noisy(model, 2);
  Variable x = embedding(model.token_embedding.weight, ids) + slice(model.position_embedding.weight, 0, 0, 4);
  Pass pass;
  const auto norm = [](const Variable& in, const nn::LayerNorm& n) { return layer_norm(in, n.weight, n.bias, 0.5); };
  for (const nn::EncoderLayer& layer : model.layers) {
    x = x + layer.self_attn(norm(x, layer.norm1), Mask::causal(), pass);
    x = x + layer.feed_forward(norm(x, layer.norm2), pass);
  }
  const Variable expected = matmul(norm(x, model.final_norm), model.token_embedding.weight, Trans::b);
  CHECK(distance(logits_of(model, ids), expected.value()) < 1e-12);
  const Variable hidden = model.hidden(ids, pass);
  CHECK(hidden.shape() == Shape{2, 4, 8});
  CHECK(same_bits(model.head(hidden).value(), logits_of(model, ids)));
}

TEST_CASE("dropout falls on embeddings, attention weights and sub-layers' outputs, and on nothing else") {
  GptConfig config = small_gpt();
  config.layer.dropout = 0.3;
  Gpt model = build_gpt(config);
  make_noisy(model, 2);
  Pass pass = Pass::training(5, 1), same = Pass::training(5, 1);
  Variable x = dropout(embedding(model.token_embedding.weight, ids) + slice(model.position_embedding.weight, 0, 0, 4),
                       0.3, pass.next_draw());
  for (const nn::EncoderLayer& layer : model.layers) {
    const Variable attended = layer.self_attn(layer.norm1(x), Mask::causal(), pass);  // draws for its weights
    x = x + dropout(attended, 0.3, pass.next_draw());
    const Variable fed = layer.feed_forward.linear2(gelu_tanh(layer.feed_forward.linear1(layer.norm2(x))));
    x = x + dropout(fed, 0.3, pass.next_draw());
  }
  const Variable expected = matmul(model.final_norm(x), model.token_embedding.weight, Trans::b);
  CHECK(distance(model(ids, same).value(), expected.value()) < 1e-12);
  CHECK(same.draws == 1 + 2 * 3);
  const auto run = [&](Pass p) { return model(ids, p).value(); };
  CHECK(same_bits(run(Pass::training(1, 5)), run(Pass::training(1, 5))));
  CHECK_FALSE(same_bits(run(Pass::training(1, 5)), run(Pass::training(1, 6))));
}

TEST_CASE("a linear map that replaces the last layer is used with its weight and its bias, tied or not") {
  for (const bool tied : {true, false}) {
    GptConfig config = small_gpt();
    config.tied = tied;
    Gpt model = build_gpt(config);
    Rng rng(3);
    model.lm_head = nn::Linear(8, 9, rng);
    make_noisy(model, 4);
    Pass pass;
    const Variable hidden = model.hidden(ids, pass), logits = model.lm_head(hidden);
    CHECK(distance(logits_of(model, ids), logits.value()) < 1e-13);
    CHECK(same_bits(logits_of(model.clone(), ids), logits_of(model, ids)));
    CHECK(model.loss(ids, next, pass).item() == doctest::Approx(cross_entropy(logits, next).item()).epsilon(1e-12));
  }
}

TEST_CASE("names are those of an encoder's layers, in the order of use") {
  Gpt model = build_gpt(small_gpt());
  const std::vector<std::string> names = names_of(model.parameters());
  std::vector<std::string> expected{"token_embedding.weight", "position_embedding.weight"};
  for (const std::string prefix : {"layers.0.", "layers.1."})
    for (const char* part : {"norm1.", "self_attn.in_proj.", "self_attn.out_proj.", "norm2.", "linear1.", "linear2."})
      for (const char* kind : {"weight", "bias"}) expected.push_back(prefix + part + kind);
  expected.insert(expected.end(), {"final_norm.weight", "final_norm.bias"});
  CHECK(names == expected);
  GptConfig other = small_gpt();
  other.layer.bias = other.tied = false;
  Gpt untied = build_gpt(other);
  const std::vector<std::string> plain = names_of(untied.parameters());
  CHECK(plain.back() == "lm_head.weight");
  CHECK(std::count_if(plain.begin(), plain.end(), [](const std::string& name) { return name.ends_with("bias"); }) == 0);
}

TEST_CASE("weights start from N(0, 0.02^2), on the residual connection less, biases from 0, norms from 1") {
  GptConfig config = small_gpt();
  config.vocab_size = config.max_len = 100;
  config.layer.d_model = 64;
  config.layer.d_ff = 256;
  config.num_layers = 8;
  config.tied = false;
  const Gpt model = build_gpt(config);
  const auto near = [](const Variable& x, double expected) {
    CHECK(deviation(x) == doctest::Approx(expected).epsilon(0.05));
  };
  near(model.token_embedding.weight, 0.02);
  near(model.position_embedding.weight, 0.02);
  near(model.lm_head.weight, 0.02);
  for (const nn::EncoderLayer& layer : model.layers) {
    near(layer.self_attn.as<nn::MultiHeadAttention>().in_proj.weight, 0.02);
    near(layer.feed_forward.linear1.weight, 0.02);
    near(layer.self_attn.as<nn::MultiHeadAttention>().out_proj.weight, 0.02 / 4);  // sqrt(2 * 8) = 4
    near(layer.feed_forward.linear2.weight, 0.02 / 4);
    for (const Variable& bias : {layer.self_attn.as<nn::MultiHeadAttention>().in_proj.bias,
                                 layer.self_attn.as<nn::MultiHeadAttention>().out_proj.bias,
                                 layer.feed_forward.linear1.bias, layer.feed_forward.linear2.bias, layer.norm1.bias})
      CHECK(deviation(bias) == 0);
    CHECK(same_bits(layer.norm2.weight.value(), full({64}, 1.0)));
  }
}

TEST_CASE("errors name the parameter, the id, or the limit") {
  Gpt model = build_gpt(small_gpt());
  Pass pass;
  CHECK_THROWS_WITH_AS(model(full({1, 7}, 3, Dtype::i32), pass), "gpt: a sequence has 7 positions, but max_len is 6",
                       Error);
  CHECK_THROWS_WITH_AS(model(full({1, 2}, 9, Dtype::i32), pass), doctest::Contains("id 9 at position 0"), Error);
  CHECK_THROWS_AS(model(ids.reshape({8}), pass), Error);
  model.layers[1].feed_forward.linear1.weight.replace_value(zeros({12, 7}));
  CHECK_THROWS_WITH_AS(model(ids, pass), doctest::Contains("from parameter layers.1.linear1.weight"), Error);
}
