// Chapter 7. GptConfig: presets with the published counts, errors, and the way through JSON.
#include "nn/models/gpt.h"

#include <doctest/doctest.h>

#include <cmath>

#include "nn/files/gpt_files.h"
#include "nn/models/config_json.h"
#include "nn/models/transformer.h"

using namespace orrery;
using nn::gpt_preset;
using nn::GptConfig;

namespace {

i64 built(const GptConfig& config) {
  Rng rng(1);
  return nn::Gpt(config, rng).parameter_count();
}

GptConfig valid_gpt() {
  return {.vocab_size = 11, .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12}, .num_layers = 3, .max_len = 7};
}

template <class Change> void check_gpt_refused(const std::string& message, const Change& change) {
  GptConfig config = valid_gpt();
  change(config);
  CHECK_THROWS_WITH_AS(config.validate(), doctest::Contains(message.c_str()), Error);
}

}  // namespace

TEST_CASE("GPT-2's presets have as many parameters as its published weights") {
  CHECK(gpt_preset("distilgpt2").parameter_count() == 81912576);
  CHECK(gpt_preset("gpt2").parameter_count() == 124439808);
  CHECK(gpt_preset("gpt2-medium").parameter_count() == 354823168);
  CHECK(gpt_preset("gpt2-large").parameter_count() == 774030080);
  CHECK(gpt_preset("gpt2-xl").parameter_count() == 1557611200);
}

TEST_CASE("GPT-3 has 174.6 billion: its paper says 175.0") {
  // Per layer 12 d^2 + 13 d, besides 50,257 tokens, 2,048 positions and the last norm, with d = 12,288.
  constexpr i64 d = 12288;
  static_assert(96 * (12 * d * d + 13 * d) + (50257 + 2048) * d + 2 * d == 174604259328);
  CHECK(gpt_preset("gpt3").parameter_count() == 174604259328);
  CHECK(gpt_preset("gpt3").layer.d_model / gpt_preset("gpt3").layer.num_heads == 128);  // d_head of table 2.1
}

TEST_CASE("nanoGPT counts 0.80 million without positions, as its training prints") {
  const GptConfig config = gpt_preset("nanogpt");
  CHECK(config.parameter_count() == 804096);
  CHECK(config.parameter_count() - config.max_len * config.layer.d_model == 795904);
  CHECK_FALSE(config.layer.bias);
  CHECK(config.layer.dropout == 0);
  CHECK(config.layer.activation == nn::Activation::gelu);
}

TEST_CASE("the count is that of the model built, with every option") {
  CHECK(built(gpt_preset("nanogpt")) == 804096);
  for (const bool bias : {false, true}) {
    for (const bool tied : {false, true}) {
      GptConfig config = valid_gpt();
      config.layer.bias = bias;
      config.tied = tied;
      config.rotary = config.query_key_norm = tied;
      CHECK(built(config) == config.parameter_count());
    }
  }
}

TEST_CASE("every preset is valid, and a wrong name lists them") {
  for (const std::string& name : nn::gpt_preset_names()) {
    const GptConfig config = gpt_preset(name);
    CAPTURE(name);
    CHECK_NOTHROW(config.validate());
    CHECK(config.layer.d_ff == 4 * config.layer.d_model);
    CHECK(config.tied);
    if (name != "nanogpt") CHECK(config.layers().activation == nn::Activation::gelu_tanh);
  }
  CHECK_THROWS_WITH_AS(gpt_preset("gpt5"),
                       "gpt config: no preset is called 'gpt5'; there are: nanogpt, distilgpt2, gpt2, gpt2-medium, "
                       "gpt2-large, gpt2-xl, gpt3",
                       Error);
}

TEST_CASE("what does not fit is refused, by name") {
  CHECK_NOTHROW(valid_gpt().validate());
  check_gpt_refused("gpt config: vocab_size must be positive, not 0", [](auto& c) { c.vocab_size = 0; });
  check_gpt_refused("d_model must be positive", [](auto& c) { c.layer.d_model = 0; });
  check_gpt_refused("d_model (9) is not a multiple of num_heads (2)", [](auto& c) { c.layer.d_model = 9; });
  check_gpt_refused("num_heads must be positive, not -1", [](auto& c) { c.layer.num_heads = -1; });
  check_gpt_refused("num_layers must be positive", [](auto& c) { c.num_layers = 0; });
  check_gpt_refused("d_ff must be positive", [](auto& c) { c.layer.d_ff = 0; });
  check_gpt_refused("max_len must be positive", [](auto& c) { c.max_len = 0; });
  check_gpt_refused("dropout must be in [0, 1), not 1", [](auto& c) { c.layer.dropout = 1; });
  check_gpt_refused("dropout must be in [0, 1), not nan", [](auto& c) { c.layer.dropout = std::nan(""); });
  check_gpt_refused("layer_norm_eps must be in (0, 1)", [](auto& c) { c.layer.layer_norm_eps = 0; });
  check_gpt_refused("rotary needs heads of an even size, not of 3", [](auto& c) {
    c.layer.d_model = 6;
    c.rotary = true;
  });
  Rng rng(1);
  CHECK_THROWS_AS(nn::Gpt({}, rng), Error);
}

TEST_CASE("a configuration goes through JSON unchanged, and is told from a Transformer's") {
  GptConfig config = valid_gpt();
  CHECK(nn::GptConfig::of_json(nn::to_json(config)) == config);
  config.layer.dropout = 0.25;
  config.layer.bias = config.tied = false;
  config.layer.layer_norm_eps = 1e-6;
  config.layer.activation = nn::Activation::relu;
  config.rotary = config.query_key_norm = true;
  CHECK(nn::GptConfig::of_json(nn::to_json(config)) == config);
  CHECK(nn::to_json(valid_gpt()).find("\"activation\":\"gelu_tanh\"") != std::string::npos);
  using nn::config_json::describes;
  CHECK(describes<GptConfig>(nn::to_json(config)));
  CHECK_FALSE(describes<nn::TransformerConfig>(nn::to_json(config)));
  CHECK_FALSE(describes<GptConfig>(nn::to_json(nn::base(100))));
  CHECK_FALSE(describes<GptConfig>("{}"));
  CHECK_THROWS_WITH_AS(describes<GptConfig>("[\"num_layers\"]"), "config: is not a JSON object", Error);
  CHECK_THROWS_WITH_AS(describes<GptConfig>("no JSON"), "config: is not valid JSON: the error is in line 1, column 2",
                       Error);
}

TEST_CASE("a published config.json: what it leaves open is as in GPT-2, and what no Gpt computes is refused") {
  const std::string sizes = R"({"n_head": 12, "n_layer": 12, "n_embd": 768, "n_positions": 1024, "vocab_size": 50257)";
  const auto read = [&](const std::string& more) { return nn::published_gpt_config(sizes + more + "}", "test"); };
  CHECK(read("") == gpt_preset("gpt2"));
  CHECK(read(R"(, "n_inner": null, "activation_function": "gelu_new", "eos_token_id": 50256)") == gpt_preset("gpt2"));
  CHECK(read(R"(, "n_inner": 100)").layer.d_ff == 100);
  CHECK(read(R"(, "activation_function": "gelu")").layer.activation == nn::Activation::gelu);
  CHECK(read(R"(, "activation_function": "gelu_pytorch_tanh")").layer.activation == nn::Activation::gelu_tanh);
  CHECK(read(R"(, "activation_function": "relu")").layer.activation == nn::Activation::relu);
  CHECK_FALSE(read(R"(, "tie_word_embeddings": false)").tied);
  const auto refused = [&](const std::string& more, const std::string& message) {
    CHECK_THROWS_WITH_AS(read(more), message.c_str(), Error);
  };
  refused(R"(, "activation_function": "silu")", "test: activation_function cannot be \"silu\"");
  refused(R"(, "activation_function": 3)", "test: activation_function cannot be 3");
  refused(R"(, "model_type": "llama")", "test: model_type must be \"gpt2\", not \"llama\"");
  refused(R"(, "scale_attn_by_inverse_layer_idx": true)",
          "test: scale_attn_by_inverse_layer_idx must be false, not true");
  refused(R"(, "scale_attn_weights": false)", "test: scale_attn_weights must be true, not false");
  refused(R"(, "layer_norm_epsilon": "small")", "test: layer_norm_epsilon must be a number, not \"small\"");
  refused(R"(, "n_inner": -5)", "test: n_inner must be a whole number from -1 to 2147483647, not -5");
  CHECK_THROWS_WITH_AS(nn::published_gpt_config("{}", "test"), "test: has no field \"n_head\"", Error);
  CHECK_THROWS_WITH_AS(nn::published_gpt_config("[]", "test"), "test: is not a JSON object", Error);
}

TEST_CASE("layer options that are not given get a GPT's defaults") {
  const GptConfig config{.vocab_size = 11, .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0.25}};
  const nn::LayerOptions layer = config.layers();
  CHECK(layer.norm_first);
  CHECK(layer.activation == nn::Activation::gelu_tanh);
  CHECK(layer.attention_dropout == 0.25);
  CHECK(layer.activation_dropout == 0);
  CHECK(layer.init == nn::Init::normal_002);
  GptConfig said = config;
  said.layer = layer;
  CHECK(said == config);
  said.layer.activation_dropout = 0.25;
  CHECK_FALSE(said == config);
  CHECK_NOTHROW(said.validate());
  said.layer.init = nn::Init::pytorch_linear;
  CHECK_THROWS_WITH_AS(said.validate(), "gpt config: init cannot be chosen: a GPT's weights start from N(0, 0.02^2)",
                       Error);
}

TEST_CASE("a file that names the seven layer options of earlier versions describes the same model") {
  const GptConfig config = nn::GptConfig::of_json(
      R"({"vocab_size":11,"d_model":8,"num_heads":2,"num_layers":3,"d_ff":12,"max_len":7,"dropout":0.5,"bias":false,)"
      R"("tied":true,"activation":"gelu","layer_norm_eps":1e-6})");
  CHECK(config == GptConfig{.vocab_size = 11,
                            .layer = {.d_model = 8,
                                      .num_heads = 2,
                                      .d_ff = 12,
                                      .dropout = 0.5,
                                      .bias = false,
                                      .activation = nn::Activation::gelu,
                                      .layer_norm_eps = 1e-6},
                            .num_layers = 3,
                            .max_len = 7});
}

TEST_CASE("a config.json of ours is read again as the same model, and what GPT-2 does not have is refused") {
  GptConfig config = valid_gpt();
  config.layer.activation = nn::Activation::gelu;
  config.layer.layer_norm_eps = 1e-3;
  config.tied = false;
  CHECK(nn::published_gpt_config(nn::published_json(config), "test") == config);
  const auto refused = [](const char* what, const auto& change) {
    GptConfig other = valid_gpt();
    change(other);
    CHECK_THROWS_WITH_AS(nn::published_json(other), doctest::Contains(what), Error);
  };
  refused("GPT-2 has no rotary positions, so Hugging Face's", [](GptConfig& c) { c.rotary = true; });
  refused("no normalised queries and keys", [](GptConfig& c) { c.query_key_norm = true; });
  refused("no heads of another size", [](GptConfig& c) { c.layer.d_k = 3; });
  refused("no other form of layer norm", [](GptConfig& c) { c.layer.layer_norm_form = LayerNormForm::std_plus_eps; });
  refused("vocab_size must be positive", [](GptConfig& c) { c.vocab_size = 0; });
}
