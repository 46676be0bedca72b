// Chapter 9. The options of `orrery lm train`: which text, which model, and how it is trained.
#pragma once

#include <memory>
#include <string>

#include "apps/program/options.h"
#include "apps/tasks/lm/training.h"
#include "apps/training/run_options.h"

namespace orrery {

struct LmTrainOptions {
  LmRecipe recipe;
  RunOptions run;
  std::string preset = "nanogpt";
  TextFiles files;
  TokenKind tokens = TokenKind::chars;
  i64 vocabulary_size = 4096;
  bool untied = false;
  double minutes = 0;           ///< --minutes: the time for everything; 0: not given
  std::string before_choice{};  ///< the options before --minutes chose, as --config takes them
};

/// Adds all options except --config, which comes first.
void add_train_options(CLI::App& command, const std::shared_ptr<LmTrainOptions>& options);
/// Errors: wrong usage of options that decide what is trained.
void check_options(const LmRecipe& recipe);
/// The command that trains the same as one with these options did. `chosen` are the values of those that decide what is
/// trained, some of them chosen by --minutes.
std::string command_of(const LmTrainOptions& options, const std::string& chosen);

}  // namespace orrery
