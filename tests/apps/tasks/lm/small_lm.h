// Chapter 9. A small GPT that learns to count, for the tests of its training.
#pragma once

#include <string>

#include "apps/tasks/lm/training.h"

namespace orrery::small {

// Odd sizes, so that no tile or chunk comes out even.
inline LmRecipe small_lm_recipe() {
  LmRecipe recipe;
  recipe.model.layer.d_model = 15;
  recipe.model.layer.num_heads = 3;
  recipe.model.layer.d_ff = 37;
  recipe.model.num_layers = 2;
  recipe.model.max_len = 11;
  recipe.model.layer.dropout = 0.1;
  recipe.steps = 30;
  recipe.batch = 5;
  recipe.warmup = 10;
  recipe.rate = 1e-2;
  recipe.last_rate = 1e-3;
  recipe.evaluate_every = 10;
  recipe.estimate_batches = 3;
  return recipe;
}

struct LmTraining {
  LmTraining(const LmRecipe& recipe, const TextData& data) : task(recipe, data), trainer(task) {}
  void steps(int count) {
    for (int i = 0; i < count; ++i) trainer.step();
  }
  double judged_loss() {
    double loss = 0;
    trainer.with_judged([&] { loss = task.validation_loss(); });
    return loss;
  }
  LmTask task;
  Trainer trainer;
};

inline TextData counting() {
  std::string text;
  for (int i = 0; i < 200; ++i) text += "one two three four ";
  return text_data(text, 11);
}

}  // namespace orrery::small
