// Chapter 6. Tests of the attention picture.
#include "apps/toy/attention_map.h"

#include <doctest/doctest.h>

#include <sstream>

#include "core/tensor_ops.h"

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
  config.num_encoder_layers = 1, config.num_decoder_layers = 2;
  Rng rng(3);
  const nn::Transformer model(config, rng);
  const Sequence source{3, 4, 5};
  const AttentionFigure best = sharpest_head(model, task, source);
  CHECK(best.read == std::vector<std::string>{"a", "b", "c"});
  CHECK(best.written == std::vector<std::string>{"c", "b", "a", "."});
  REQUIRE(best.weights.size() == 4);
  // By hand: the weights of every layer and head for this one sequence.
  const Sequence target = task.target(source);
  nn::Pass pass = nn::Pass::inference();
  nn::AttentionMaps maps;
  model(batch_of({source}, task.source_length(), task.pad),
        slice(batch_of({target}, static_cast<i64>(target.size()), task.pad), 1, 0, -1), pass, &maps);
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

TEST_CASE("an anti-diagonal looks like one") {
  std::ostringstream out;
  print_attention(out, {.task = "reverse", .written = {"b", "a"}, .read = {"a", "b"}, .weights = {{0, 1}, {0.7, 0.3}}});
  CHECK(out.str() ==
        "     a b \n"
        "  b |  ██|\n"
        "  a |▓▓░░|\n");
}
