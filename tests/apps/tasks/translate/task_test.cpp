// Chapter 9. Tests of training a translator: its recipes, its text, its losses.
#include "apps/tasks/translate/task.h"

#include <doctest/doctest.h>
#include <cmath>

#include "apps/training/recipe.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "tests/apps/tasks/translate/small_translation.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::translate;
using small::AnimalTraining;
using small::error_of;

TEST_CASE("the preset tiny trains the published model with Muon, on a third of the tokens") {
  const TranslationRecipe recipe = translation_preset("tiny"), published = translation_preset("published");
  CHECK(recipe.model == published.model);
  CHECK(recipe.smoothing == published.smoothing);
  CHECK(recipe.optimizer == OptimizerKind::muon);
  CHECK(recipe.steps * recipe.micro_batches * 3 < published.steps * published.micro_batches);
  CHECK(recipe.rate_of(50) == doctest::Approx(0.0015));
  CHECK(recipe.rate_of(100) == doctest::Approx(0.003));
  CHECK(recipe.rate_of(1560) == doctest::Approx(0.003));
  CHECK(recipe.rate_of(5200) < 1e-6);
  CHECK_FALSE(recipe.keep_last);  // with fewer pairs the lowest loss may come long before the end
}

TEST_CASE("an epoch is the default between evaluations") {
  TranslationRecipe recipe = small::small_translation_recipe();
  recipe.evaluate_every = TrainingRecipe::automatic;
  AnimalTraining training(recipe);
  const i64 batches = training.task.batches().in_epoch();
  CHECK(batches > 4);
  CHECK(training.task.recipe().evaluate_every == (batches + 1) / 2);
}

TEST_CASE("the validation loss is the mean over all tokens, without smoothing and padding") {
  AnimalTraining training;
  training.train(3);
  double total = 0;
  i64 tokens = 0;
  const Corpus& validation = training.data.validation;
  const auto& model = dynamic_cast<const TransformerTranslator&>(training.task.model()).model;
  const NoGradient nothing_recorded;
  for (i64 i = 0; i < validation.size(); ++i) {
    std::vector<i32> source(validation.source[i].begin(), validation.source[i].end()),
        target(validation.target[i].begin(), validation.target[i].end()), labels = target;
    source.push_back(end_id);
    target.insert(target.begin(), begin_id);
    labels.push_back(end_id);
    const auto row = [](const std::vector<i32>& ids) {
      return Tensor::of<i32>({1, static_cast<i64>(ids.size())}, ids);
    };
    nn::Pass pass = nn::Pass::inference();
    total += cross_entropy(model(row(source), row(target), pass), row(labels), {.reduction = Reduction::sum}).item();
    tokens += static_cast<i64>(labels.size());
  }
  CHECK(training.task.validation_loss() == doctest::Approx(total / static_cast<double>(tokens)).epsilon(1e-5));
}

TEST_CASE("the loss of a step is smoothed, and the mean over its target tokens") {
  TranslationRecipe recipe = small::small_translation_recipe();
  recipe.model.layer.dropout = 0;
  AnimalTraining training(recipe);
  const std::vector<Items> tokens = training.task.draw(1, 2);
  REQUIRE(tokens.size() == 2);
  double mean = 0;
  for (i64 i = 0; i < 2; ++i) {
    nn::Pass pass = nn::Pass::training(1, 1, i);
    mean += training.task.loss(i, pass).loss.item() * static_cast<double>(tokens[static_cast<size_t>(i)].counted);
  }
  CHECK(training.trainer.step().loss ==
        doctest::Approx(mean / static_cast<double>(tokens[0].counted + tokens[1].counted)));
  recipe.smoothing = 0;
  AnimalTraining plain(recipe);
  CHECK(std::abs(plain.trainer.step().loss - training.trainer.losses()[0]) > 1e-4);
}

TEST_CASE("a line that cannot be translated is an error that says why") {
  AnimalTraining training;
  CHECK(small::contains(error_of([&] { training.task.translate(std::string(60, 'a') + " \xff"); }), "not UTF-8"));
  CHECK(small::contains(error_of([&] { training.task.translate(small::repeated("the ", 30)); }),
                        "has 30 tokens, more than the model's 20"));
}

TEST_CASE("a recipe with which no training is possible is refused before any text is read") {
  TranslationRecipe recipe = small::small_translation_recipe();
  const TranslationData data = small::animal_data(recipe);
  recipe.batch_tokens = recipe.most_tokens;
  const std::string refusal = "translation recipe: batch_tokens (20) must be larger than most_tokens (20)";
  CHECK(error_of([&] { translation_data({.source = "/nowhere", .target = "/nowhere"}, recipe); }) == refusal);
  recipe.batch_tokens = recipe.most_tokens = 3;  // smaller than the pairs
  CHECK(error_of([&] { TranslationTask(recipe, data); }) ==
        "translation recipe: batch_tokens (3) must be larger than most_tokens (3)");
}

TEST_CASE("tokens of a step are counted without padding, and a part of the validation is timed for all of it") {
  AnimalTraining training;
  TranslationTask& task = training.task;
  const std::vector<Items> drawn = task.draw(1, 2);
  i64 tokens = 0;
  for (i64 i = 0; i < 2; ++i) {
    TranslationBatches batches(training.data.training, task.recipe().batch_tokens,
                               random_numbers(task.recipe().seed, Purpose::training));
    const TranslationBatch batch = batches.batch(i);
    for (const Tensor* x : {&batch.source, &batch.labels})
      for (i64 k = 0; k < x->count(); ++k) tokens += x->at(k) != pad_id;
  }
  CHECK(drawn[0].read + drawn[1].read == tokens);
  CHECK(task.seconds_of_evaluation() > 0);
}

namespace {

// SentencePiece's tokens.
TranslationRecipe recipe_of_pieces() {
  TranslationRecipe recipe = small::small_translation_recipe();
  recipe.segmented = false;
  recipe.vocabulary = recipe.most_tokens = 60;
  recipe.batch_tokens = 100;
  return recipe;
}

}  // namespace

TEST_CASE("sentencepiece learns from the training pairs alone; the same files give the same data") {
  const TranslationRecipe recipe = recipe_of_pieces();
  const TranslationData data = small::animal_data(recipe), again = small::animal_data(recipe);
  CHECK_FALSE(data.vocabulary.is_segmented());
  CHECK(data.vocabulary.to_json() == again.vocabulary.to_json());
  CHECK(data.training.size() + data.validation.size() == 20);
  CHECK(data.first_source.starts_with("the "));
}

TEST_CASE("a line that is far too long changes nothing but the count of what is left out") {
  const TemporaryFolder folder;
  const small::AnimalText text = small::animal_text();
  set_contents(folder / "en", text.english);
  set_contents(folder / "de", text.german);
  // SentencePiece alone would take minutes for this line.
  set_contents(folder / "longer.en", text.english + small::repeated("a ", 300'000) + "\n");
  set_contents(folder / "longer.de", text.german + "eins\n");
  const TranslationRecipe recipe = recipe_of_pieces();
  const TranslationFiles valid{
      .source = folder / "en", .target = folder / "de", .valid_source = folder / "en", .valid_target = folder / "de"};
  TranslationFiles longer = valid;
  longer.source = folder / "longer.en";
  longer.target = folder / "longer.de";
  const TranslationData data = translation_data(valid, recipe), with_line = translation_data(longer, recipe);
  CHECK(with_line.vocabulary.to_json() == data.vocabulary.to_json());
  CHECK(with_line.training.size() == data.training.size());
  CHECK(with_line.training.counts.text(60) == "20 of 21 pairs (left out: 1 longer than 60 tokens)");
}

TEST_CASE("the preset published is the published recipe for Multi30k") {
  const TranslationRecipe recipe = translation_preset("published");
  CHECK(recipe.with_vocabulary(9708 + first_piece_id).model.parameter_count() == 2'568'576);
  CHECK(recipe.model.layer.num_heads == 4);
  CHECK(recipe.model.layer.dropout == 0.3);
  CHECK(recipe.model.layers().attention_dropout == 0);
  CHECK(recipe.optimizer == OptimizerKind::adam);
  CHECK(recipe.beta2 == 0.98);
  CHECK(recipe.clip == 25);
  CHECK(recipe.rate_of(1) == doctest::Approx(1e-7 + (0.005 - 1e-7) / 2000));
  CHECK(recipe.rate_of(2000) == doctest::Approx(0.005));
  CHECK(recipe.rate_of(8000) == doctest::Approx(0.0025));
  CHECK(recipe.micro_batches * recipe.batch_tokens == 8192);
  CHECK(recipe.steps == 8000);
  CHECK(recipe.average_last == 10);
  CHECK(recipe.keep_last);
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
