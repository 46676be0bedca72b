// Chapter 9. What the tests of translators share: invented sentences, and a model that learns from them in a moment.
#pragma once

#include "apps/tasks/translate/task.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/temporary_folder.h"

namespace orrery::small {

/// Animals that see one another, in English and German: every pair of different ones.
struct AnimalText {
  std::string english, german;
};
inline AnimalText animal_text() {
  using Names = std::vector<std::string>;
  const Names english{"dog", "cat", "child", "woman", "bird"};
  const Names subject{"der hund", "die katze", "das kind", "die frau", "der vogel"};
  const Names object{"den hund", "die katze", "das kind", "die frau", "den vogel"};
  AnimalText text;
  for (size_t i = 0; i < english.size(); ++i)
    for (size_t j = 0; j < english.size(); ++j) {
      if (i == j) continue;
      const std::string big = (i + j) % 2 == 0 ? "not " : "", nicht = big.empty() ? "" : " nicht";
      text.english += "the " + english[i] + " does " + big + "see the " + english[j] + " .\n";
      text.german += subject[i] + " sieht " + object[j] + nicht + " .\n";
    }
  return text;
}

/// Odd sizes, so that no tile or chunk comes out even; dropout is on.
inline translate::TranslationRecipe small_translation_recipe() {
  translate::TranslationRecipe recipe;
  recipe.model.layer = {.d_model = 15, .num_heads = 3, .d_ff = 37, .dropout = 0.1};
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 1;
  recipe.segmented = true;
  recipe.batch_tokens = 40;
  recipe.most_tokens = 20;
  recipe.micro_batches = 2;
  recipe.steps = 12;
  recipe.warmup = 4;
  recipe.evaluate_every = 5;
  recipe.average_last = 2;
  return recipe;
}

inline translate::TranslationData animal_data(const translate::TranslationRecipe& recipe) {
  const TemporaryFolder folder;
  const AnimalText text = animal_text();
  set_contents(folder / "en", text.english);
  set_contents(folder / "de", text.german);
  return translate::translation_data({.source = folder / "en", .target = folder / "de"}, recipe);
}

/// A model that learns them.
struct AnimalTraining {
  explicit AnimalTraining(const translate::TranslationRecipe& recipe = small_translation_recipe())
      : data(animal_data(recipe)), task(recipe, data), trainer(task) {}
  void train(i64 until) { train_until(trainer, until); }
  translate::TranslationData data;
  translate::TranslationTask task;
  Trainer trainer;
};

}  // namespace orrery::small
