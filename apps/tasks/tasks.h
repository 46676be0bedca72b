// Chapter 9. The list of all tasks, in tasks.cpp: what `orrery` trains, and the models that these trainings save;
// options of several tasks.
#pragma once

#include <string>
#include <vector>

#include "apps/program/command.h"
#include "core/dtype.h"
#include "nn/generate/constraints.h"

namespace orrery {

/// A kind of model that a file may hold, known by the fields of its configuration.
struct SavedModel {
  bool (*is_described_by)(const std::string& config);
  i64 (*parameter_count)(const std::string& config);  ///< error: sizes that no model can have
};

/// A task: its sub-command, and the models that it saves.
struct ListedTask {
  AddCommand* add;
  std::vector<SavedModel> models;
};

std::vector<ListedTask> all_tasks();

/// --repetition-penalty and --no-repeat-ngram, of what is written.
void add_constraints(CLI::App& command, nn::Constraints& constraints);

}  // namespace orrery
