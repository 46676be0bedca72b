// Chapter 9. The options of `orrery translate train`: which model, which text, and how it is trained.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/program/options.h"
#include "apps/tasks/translate/data.h"
#include "apps/tasks/translate/recipe.h"
#include "apps/training/run_options.h"

namespace orrery::translate {

/// An option that not all models have.
struct ModelOption {
  CLI::Option* option;
  std::vector<ModelKind> kinds;  ///< that have it

  bool is_of(ModelKind kind) const { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); }
};

struct TrainOptions {
  TranslationRecipe recipe = translation_preset("tiny");
  TranslationFiles files;
  RunOptions run;
  std::string preset = "tiny", model = name_of(ModelKind::transformer);
  std::vector<ModelOption> of_models{};
};

/// Adds all options. Those that name a preset or a model come first, for the others change what these choose.
void add_train_options(CLI::App& command, const std::shared_ptr<TrainOptions>& options);

/// Copies the options that several models share into the configuration of the one that is trained. Errors: wrong usage
/// of options that decide what is trained.
void settle(TrainOptions& options);
/// Errors: wrong usage of the options for files of text.
void check_files(const TrainOptions& options);

}  // namespace orrery::translate
