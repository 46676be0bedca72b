// Chapter 7. The Transformer: its loss, rows that are alone, no padding, errors. What it computes is PyTorch's
// (tests/torch).
#include "nn/models/transformer.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "tests/nn/compare.h"
#include "tests/nn/models/translator_checks.h"

using namespace orrery;
using nn::Pass;
using nn::Transformer;

namespace {

nn::TransformerConfig small_config() {
  return {.src_vocab_size = 9,
          .tgt_vocab_size = 9,
          .layer = {.d_model = 8, .num_heads = 2, .d_ff = 12, .dropout = 0},
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .max_len = 12};
}

Transformer build(const nn::TransformerConfig& config) { return nn::built<Transformer>(config); }

const Tensor source = Tensor::of<i32>({2, 4}, {3, 4, 5, 6, 7, 8, 0, 0});
const Tensor target = Tensor::of<i32>({2, 3}, {1, 5, 4, 1, 8, 0});

}  // namespace

TEST_CASE("the loss is the cross entropy of the logits, and a row does not depend on its padding or on other rows") {
  nn::check_loss(build(small_config()));
  nn::check_rows(build(small_config()));
}

TEST_CASE("without a pad_id every token counts") {
  nn::TransformerConfig config = small_config();
  config.pad_id = -1;
  const Transformer model = build(config);
  CHECK_FALSE(model.masks(source, target).source.has_padding());
  CHECK(model.masks(source, target).target.is_causal());
  Tensor other = source.clone();
  other.write<i32>()[7] = 3;
  CHECK(distance(nn::logits_of(model, source, target).rows(1, 2), nn::logits_of(model, other, target).rows(1, 2)) > 0);
}

TEST_CASE("a recorder has the weights of every attention of the model") {
  const Transformer model = build(small_config());
  nn::AttentionRecorder seen;
  Pass pass;
  pass.recorder = &seen;
  model(source, target, pass);
  CHECK(seen.all.size() == 6);
  for (const nn::EncoderLayer& layer : model.encoder.layers)
    CHECK(seen.of(*layer.self_attn).shape() == Shape{2, 2, 4, 4});
  for (const nn::DecoderLayer& layer : model.decoder.layers) {
    CHECK(seen.of(*layer.self_attn).shape() == Shape{2, 2, 3, 3});
    CHECK(seen.of(*layer.multihead_attn).shape() == Shape{2, 2, 3, 4});
  }
}

TEST_CASE("errors name the parameter, the id, or the limit") {
  Transformer model = build(small_config());
  Pass pass;
  Variable& weight = model.encoder.layers[0].feed_forward.linear1.weight;
  weight.replace_value(zeros({12, 7}));
  CHECK_THROWS_WITH_AS(model(source, target, pass), doctest::Contains("from parameter encoder.layers.0.linear1.weight"),
                       Error);
  const Transformer sound = build(small_config());
  CHECK_THROWS_WITH_AS(sound(full({1, 2}, 9, Dtype::i32), target.rows(0, 1), pass),
                       doctest::Contains("id 9 at position 0"), Error);
  CHECK_THROWS_WITH_AS(sound(full({2, 13}, 3, Dtype::i32), target, pass),
                       doctest::Contains("13 positions, but max_len is 12"), Error);
  CHECK_THROWS_AS(sound(source, target.rows(0, 1), pass), Error);
  CHECK_THROWS_AS(sound(source.reshape({8}), target, pass), Error);
}
