// Chapter 7. TransformerConfig: presets with exact counts, errors, and the way through JSON.
#include "nn/models/transformer.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace orrery;
using nn::TransformerConfig;

namespace {

// What the model has, and what its configuration says it has.
i64 parameters_of(const TransformerConfig& config) {
  Rng rng = Rng::of_zeros();
  const i64 count = nn::Transformer(config, rng).parameter_count();
  CHECK(config.parameter_count() == count);
  return count;
}

// By hand: four d x d matrices of attention with biases, the feed-forward network, and norms of 2 d.
constexpr i64 attention(i64 d) { return 4 * (d * d + d); }
constexpr i64 feed_forward(i64 d, i64 f) { return 2 * d * f + f + d; }
constexpr i64 encoder_layer(i64 d, i64 f) { return attention(d) + feed_forward(d, f) + 2 * 2 * d; }
constexpr i64 decoder_layer(i64 d, i64 f) { return 2 * attention(d) + feed_forward(d, f) + 3 * 2 * d; }
constexpr i64 model(i64 layers, i64 d, i64 f, i64 vocabulary) {
  return layers * (encoder_layer(d, f) + decoder_layer(d, f)) + vocabulary * d + vocabulary;
}

TransformerConfig valid_transformer() {
  return {.src_vocab_size = 13, .tgt_vocab_size = 11, .layer = {.d_model = 8, .num_heads = 2}};
}

template <class Change> void check_transformer_refused(const std::string& message, const Change& change) {
  TransformerConfig config = valid_transformer();
  change(config);
  CHECK_THROWS_WITH_AS(config.validate(), doctest::Contains(message.c_str()), Error);
}

}  // namespace

TEST_CASE("slow: the base model has 63,119,496 parameters: the paper's 65 million") {
  static_assert(model(6, 512, 2048, 37000) == 63119496);
  CHECK(parameters_of(nn::base(37000)) == 63119496);
}

TEST_CASE("slow: the big model has 214,282,376 parameters: the paper's 213 million") {
  static_assert(model(6, 1024, 4096, 37000) == 214282376);
  CHECK(parameters_of(nn::big(37000)) == 214282376);
}

TEST_CASE("the tiny model with 9,712 tokens has 2,568,192 parameters: no bias of the logits") {
  static_assert(model(4, 128, 256, 9712) - 9712 == 2568192);
  CHECK(parameters_of(nn::tiny(9712)) == 2568192);
}

TEST_CASE("counts follow every option") {
  TransformerConfig config{.src_vocab_size = 13,
                           .tgt_vocab_size = 11,
                           .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12},
                           .num_encoder_layers = 2,
                           .num_decoder_layers = 3,
                           .max_len = 10};
  const i64 plain = 2 * encoder_layer(8, 12) + 3 * decoder_layer(8, 12) + (13 + 11) * 8 + 11 * 8 + 11;
  CHECK(parameters_of(config) == plain);
  config.generator_bias = false;
  CHECK(parameters_of(config) == plain - 11);
  config.generator_bias = true;
  config.final_norm = true;
  CHECK(parameters_of(config) == plain + 2 * 16);
  config.positions = nn::Positions::learned;
  CHECK(parameters_of(config) == plain + 2 * 16 + 2 * 10 * 8);
  config.layer.d_k = 3;
  config.layer.d_v = 5;  // each attention: 2 (3 + 3 + 5) x 8 in, 8 x 10 out
  CHECK(parameters_of(config) == plain + 32 + 160 + 8 * (22 * 8 + 22 + 80 + 8 - attention(8)));
  config.layer.bias = false;
  parameters_of(config);
  config.src_vocab_size = 11;
  config.share_embeddings = true;
  parameters_of(config);
  config.layer.d_model = config.layer.d_ff = config.num_decoder_layers = config.layer.d_v = i64{1} << 30;
  CHECK(config.parameter_count() == i64{1} << 53);  // more than can be told apart
}

TEST_CASE("dropout inside sub-layers: as everywhere by default, none in the paper's presets") {
  CHECK(valid_transformer().layers().attention_dropout == 0.1);
  CHECK(valid_transformer().layers().activation_dropout == 0.1);
  CHECK(nn::base(100).layers().attention_dropout == 0);
  CHECK(nn::base(100).layers().dropout == 0.1);
  CHECK(nn::big(100).layers().dropout == 0.3);
  CHECK(nn::big(100).layers().activation_dropout == 0);
}

TEST_CASE("what does not fit is refused, by name") {
  CHECK_NOTHROW(valid_transformer().validate());
  check_transformer_refused("src_vocab_size must be positive, not 0", [](auto& c) { c.src_vocab_size = 0; });
  check_transformer_refused("d_model (9) is not a multiple of num_heads (2); give d_k and d_v",
                            [](auto& c) { c.layer.d_model = 9; });
  check_transformer_refused("num_heads must be positive, not 0", [](auto& c) { c.layer.num_heads = 0; });
  check_transformer_refused("num_decoder_layers must be positive", [](auto& c) { c.num_decoder_layers = 0; });
  check_transformer_refused("dropout must be in [0, 1), not 1", [](auto& c) { c.layer.dropout = 1; });
  check_transformer_refused("attention_dropout must be in [0, 1), not -0.5",
                            [](auto& c) { c.layer.attention_dropout = -0.5; });
  check_transformer_refused("dropout must be in [0, 1), not nan", [](auto& c) { c.layer.dropout = std::nan(""); });
  check_transformer_refused("pad_id (11) must be below both vocabulary sizes (13 and 11)",
                            [](auto& c) { c.pad_id = 11; });
  check_transformer_refused("pad_id must be a token's id, or -1", [](auto& c) { c.pad_id = -2; });
  check_transformer_refused("share_embeddings needs one vocabulary, but the sizes are 13 and 11",
                            [](auto& c) { c.share_embeddings = true; });
  check_transformer_refused("layer_norm_eps must be in (0, 1)", [](auto& c) { c.layer.layer_norm_eps = 0; });
  check_transformer_refused("max_len must be positive", [](auto& c) { c.max_len = 0; });
  Rng rng(1);
  CHECK_THROWS_AS(nn::Transformer({}, rng), Error);
}

TEST_CASE("a configuration goes through JSON unchanged") {
  TransformerConfig config = valid_transformer();
  CHECK(nn::TransformerConfig::of_json(nn::to_json(config)) == config);
  config = {.src_vocab_size = 20,
            .tgt_vocab_size = 20,
            .layer = {.d_model = 10,
                      .num_heads = 4,
                      .d_ff = 7,
                      .d_k = 3,
                      .d_v = 2,
                      .dropout = 0.25,
                      .attention_dropout = 0.0,
                      .activation_dropout = 0.125,
                      .norm_first = true,
                      .bias = false,
                      .activation = nn::Activation::gelu,
                      .layer_norm_eps = 1e-6,
                      .layer_norm_form = LayerNormForm::unbiased_std_plus_eps,
                      .init = nn::Init::normal_001},
            .num_encoder_layers = 1,
            .num_decoder_layers = 3,
            .final_norm = true,
            .max_len = 9,
            .pad_id = -1,
            .share_embeddings = true,
            .generator_bias = false,
            .positions = nn::Positions::learned};
  CHECK(nn::TransformerConfig::of_json(nn::to_json(config)) == config);
  CHECK(nn::to_json(config).find("\"activation\":\"gelu\"") != std::string::npos);
}
