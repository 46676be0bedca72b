// Chapter 9. Tests of the recipes of translators: the published one, the others, and their JSON.
#include "apps/tasks/translate/recipe.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::translate;
using small::error_of;

TEST_CASE("the preset published is the published recipe for Multi30k") {
  const TranslationRecipe recipe = translation_preset("published");
  CHECK(recipe.model.num_encoder_layers == 4);
  CHECK(recipe.model.num_decoder_layers == 4);
  CHECK(recipe.model.layer.d_model == 128);
  CHECK(recipe.model.layer.d_ff == 256);
  CHECK(recipe.model.layer.num_heads == 4);
  CHECK_FALSE(recipe.model.layer.norm_first);
  CHECK_FALSE(recipe.model.final_norm);
  CHECK(recipe.model.layers().activation == nn::Activation::relu);
  CHECK(recipe.model.positions == nn::Positions::sinusoidal);
  CHECK(recipe.model.share_embeddings);
  CHECK(recipe.model.layer.dropout == 0.3);
  CHECK(recipe.model.layers().attention_dropout == 0);
  CHECK(recipe.model.layers().activation_dropout == 0);
  CHECK(recipe.optimizer == OptimizerKind::adam);
  CHECK(recipe.beta1 == 0.9);
  CHECK(recipe.beta2 == 0.98);
  CHECK(recipe.eps == 1e-8);
  CHECK(recipe.clip == 25);
  CHECK(recipe.weight_decay == 0);
  CHECK(recipe.rate_of(1) == doctest::Approx(1e-7 + (0.005 - 1e-7) / 2000));
  CHECK(recipe.rate_of(2000) == doctest::Approx(0.005));
  CHECK(recipe.rate_of(8000) == doctest::Approx(0.0025));
  CHECK(recipe.smoothing == 0.1);
  CHECK(recipe.micro_batches * recipe.batch_tokens == 8192);
  CHECK(recipe.steps == 8000);
  CHECK(recipe.average_last == 10);
  CHECK(recipe.patience == 10);
  CHECK(recipe.keep_last);
  // 9,708 tokens and the named ones. Without biases and norms: 2.55 million weights.
  nn::TransformerConfig model = recipe.model;
  model.src_vocab_size = model.tgt_vocab_size = 9708 + first_piece_id;
  const i64 weights = 9715 * 128 + 4 * (4 + 8) * 128 * 128 + 8 * 2 * 128 * 256;
  CHECK(weights == 2'554'240);
  CHECK(model.parameter_count() == 2'568'576);
}

TEST_CASE("the preset tiny trains the published model with Muon, on a third of the tokens") {
  const TranslationRecipe recipe = translation_preset("tiny"), published = translation_preset("published");
  CHECK(recipe.model == published.model);
  CHECK(recipe.smoothing == published.smoothing);
  CHECK(recipe.optimizer == OptimizerKind::muon);
  CHECK(recipe.steps * recipe.micro_batches * 3 < published.steps * published.micro_batches);
  CHECK(recipe.steps == 5200);
  CHECK(recipe.clip == 1);
  CHECK(recipe.average_last == 0);
  CHECK(recipe.patience == 10);
  CHECK(recipe.rate_of(50) == doctest::Approx(0.0015));
  CHECK(recipe.rate_of(100) == doctest::Approx(0.003));
  CHECK(recipe.rate_of(1560) == doctest::Approx(0.003));
  CHECK(recipe.rate_of(5200) < 1e-6);
  CHECK_FALSE(recipe.keep_last);  // with fewer pairs the lowest loss may come long before the end
}

TEST_CASE("every preset is a recipe") {
  for (const std::string& name : translation_preset_names()) {
    CAPTURE(name);
    translation_preset(name).validate();
  }
  CHECK(small::contains(error_of([] { translation_preset("huge"); }), "there is no preset 'huge'"));
  TranslationRecipe recipe = translation_preset("tiny");
  recipe.batch_tokens = 256;
  CHECK(small::contains(error_of([&] { recipe.validate(); }),
                        "batch_tokens (256) must be larger than most_tokens (256)"));
}
