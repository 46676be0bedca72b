// Chapter 9. A translator, trained on two files: line i of one is the translation of line i of the other.
// Question: can a model translate sentences that it has never seen, after a hundred short pairs?
// Answer: yes, most of them, endings of German included, if the words and the forms came in other sentences before.
#include <iomanip>
#include <iostream>

#include "apps/tasks/translate/task.h"

using namespace orrery;
using namespace orrery::translate;

namespace {

// Small enough to learn in seconds; `translation_preset` has recipes for real texts.
TranslationRecipe small_recipe() {
  TranslationRecipe recipe;
  recipe.model.layer = {.d_model = 64, .num_heads = 4, .d_ff = 128, .dropout = 0.1};
  recipe.model.num_encoder_layers = recipe.model.num_decoder_layers = 2;
  recipe.segmented = true;  // words are tokens; without this line, SentencePiece finds pieces of words
  recipe.batch_tokens = 512;
  recipe.most_tokens = 20;
  recipe.steps = 200;
  recipe.schedule = Schedule::noam;
  recipe.warmup = 100;
  recipe.cooldown = 0.5;
  recipe.evaluate_every = 50;
  return recipe;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = ORRERY_DATA_FOLDER "/";
  const TranslationFiles files{.source = argc > 2 ? argv[1] : folder + "animals.en",
                               .target = argc > 2 ? argv[2] : folder + "animals.de"};
  TranslationRecipe recipe = small_recipe();
  const TranslationData data = translation_data(files, recipe);
  TranslationTask task(recipe, data);
  Trainer trainer(task);
  std::cout << data.training.size() << " pairs to train on, " << data.validation.size() << " to validate with\n"
            << std::fixed << std::setprecision(2);
  while (!trainer.finished()) {
    trainer.step();
    if (trainer.evaluation_is_due())
      std::cout << "step " << trainer.steps_done() << "  validation loss " << trainer.evaluate()[0].value << '\n';
  }
  trainer.end_with_best();
  i64 right = 0;
  for (i64 i = 0; i < data.validation.size(); ++i) {
    const std::string source = data.vocabulary.text(data.validation.source[i]), answer = task.translate(source);
    right += answer == data.vocabulary.text(data.validation.target[i]);
    std::cout << source << "  ->  " << answer << '\n';
  }
  std::cout << right << " of " << data.validation.size() << " as in the file\n";
  if (argc > 3) save_translator(task.model(), data.vocabulary, argv[3]);
  return argc > 2 || 2 * right > data.validation.size() ? 0 : 1;
}
