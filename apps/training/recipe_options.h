// Chapter 9. The options of every training program for its recipe: one for each field of TrainingRecipe, named like it.
//
// A program gives its defaults in the recipe that it passes. Options of its own may go into the same groups of the
// help.
#pragma once

#include "apps/program/options.h"
#include "apps/training/recipe.h"

namespace orrery {

/// Two of the groups, for options of a program's own.
inline constexpr const char *training_group = "Training", *evaluation_group = "Evaluation";

/// What TrainingRecipe::automatic stands for, such as "an epoch", in the help of a program that allows it.
struct AutomaticValues {
  std::string warmup{}, evaluate_every{};
};

/// Adds the options for `recipe` in four groups: Training, Optimiser, Learning rate, Evaluation.
void add_recipe_options(CLI::App& command, TrainingRecipe& recipe, const AutomaticValues& automatic = {});

/// Wrong usage, in terms of the options: a recipe with which no training is possible.
void check_recipe_options(const TrainingRecipe& recipe);

}  // namespace orrery
