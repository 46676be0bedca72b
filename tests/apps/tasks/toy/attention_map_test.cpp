// Chapter 6. Tests of the attention picture.
#include "apps/tasks/toy/attention_map.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "core/tensor_ops.h"
#include "tests/apps/show/attention/random_attention.h"

using namespace orrery;

TEST_CASE("sharpness is 1 for one key a row and 1/m for none in particular") {
  CHECK(sharpness({{0, 1}, {1, 0}}) == 1);
  CHECK(sharpness({{0.25, 0.25, 0.25, 0.25}}) == 0.25);
  CHECK(sharpness({{0, 1}, {0.5, 0.5}}) == 0.75);
  CHECK(sharpness({}) == 0);
}

TEST_CASE("the sharpest head of a model is the one whose own weights are sharpest") {
  const ToyTask task{.symbols = 5, .min_length = 2, .max_length = 4};
  nn::TransformerConfig config{.src_vocab_size = task.vocab_size(), .tgt_vocab_size = task.vocab_size()};
  config.layer = {.d_model = 8, .num_heads = 2, .d_ff = 8};
  config.num_encoder_layers = 1;
  config.num_decoder_layers = 2;
  Rng rng(3);
  const nn::Transformer model(config, rng);
  const Sequence source{3, 4, 5};
  const AttentionFigure best = sharpest_head(model, task, source);
  CHECK(best.read == std::vector<std::string>{"a", "b", "c"});
  CHECK(best.written == std::vector<std::string>{"c", "b", "a", "."});
  REQUIRE(best.weights.size() == 4);
  // By hand: the weights of every layer and head for this one sequence.
  const Sequence target = task.target(source);
  const AttentionMaps maps =
      attention_maps(model, batch_of({source}, task.source_length(), task.pad),
                     slice(batch_of({target}, static_cast<i64>(target.size()), task.pad), 1, 0, -1));
  double sharpest = 0;
  for (const Tensor& layer : maps.decoder_cross) {
    for (i64 head = 0; head < 2; ++head) {
      double total = 0;
      for (i64 i = 0; i < 4; ++i) total += std::max({layer(0, head, i, 0), layer(0, head, i, 1), layer(0, head, i, 2)});
      sharpest = std::max(sharpest, total / 4);
    }
  }
  CHECK(sharpness(best.weights) == doctest::Approx(sharpest).epsilon(1e-6));
  CHECK(best.weights[2][1] == maps.decoder_cross[static_cast<size_t>(best.layer)](0, best.head, 2, 1));
}

TEST_CASE("the page of the toy has the weights of every head for each sequence, without the padding") {
  const ToyTask task{.symbols = 5, .min_length = 2, .max_length = 4};
  nn::TransformerConfig config{.src_vocab_size = task.vocab_size(), .tgt_vocab_size = task.vocab_size()};
  config.layer = {.d_model = 8, .num_heads = 2, .d_ff = 8};
  config.num_encoder_layers = 1;
  config.num_decoder_layers = 2;
  Rng rng(3);
  const nn::Transformer model(config, rng);
  const nlohmann::json data = nlohmann::json::parse(attention_page(model, task, {{3, 4, 5}, {4, 4}}).json());
  const HeadsFigure heads = every_head(model, task, {3, 4, 5});
  REQUIRE(data.at("pairs").size() == 2);
  CHECK(data["pairs"][1].at("source") == "b b");
  const nlohmann::json& shown = data["pairs"][0].at("attentions");
  CHECK(shown.at(2).at("rows") == nlohmann::json{"c", "b", "a", "."});
  const auto check_maps = [](const nlohmann::json& layers, const std::vector<HeadMap>& maps) {
    for (const HeadMap& map : maps) {
      const nlohmann::json& weights = layers.at(static_cast<size_t>(map.layer)).at(static_cast<size_t>(map.head));
      REQUIRE(weights.size() == map.weights.size());
      for (size_t i = 0; i < map.weights.size(); ++i)
        for (size_t j = 0; j < map.weights[i].size(); ++j) CHECK(small::shows(weights.at(i).at(j), map.weights[i][j]));
    }
  };
  check_maps(shown.at(0).at("layers"), heads.encoder);
  check_maps(shown.at(1).at("layers"), heads.decoder_self);
  check_maps(shown.at(2).at("layers"), heads.decoder_cross);
}

TEST_CASE("an anti-diagonal looks like one") {
  std::ostringstream out;
  print_attention(out, {.task = "reverse", .written = {"b", "a"}, .read = {"a", "b"}, .weights = {{0, 1}, {0.7, 0.3}}});
  CHECK(out.str() ==
        "     a b \n"
        "  b |  ██|\n"
        "  a |▓▓░░|\n");
}
