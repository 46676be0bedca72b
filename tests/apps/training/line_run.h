// Chapter 9. A line that is trained as a program trains its model, with files, log and messages.
#pragma once

#include <functional>
#include <iostream>
#include <sstream>
#include <string>

#include "apps/training/run.h"
#include "core/files/safetensors.h"
#include "tests/apps/training/line_task.h"

namespace orrery::small {

/// Trains a line to its end, as a program does; `heard` is what it wrote to stderr.
struct LineRun {
  explicit LineRun(const std::string& path, const TrainingRecipe& recipe = line_recipe())
      : training(recipe), files("line", path) {}
  void go(const RunHooks& hooks = {}, const std::string& log_path = "",
          TrainingLog::Earlier earlier = TrainingLog::Earlier::kept) {
    listen([&] {
      TrainingLog log(log_path, earlier);
      const Interrupt interrupt;
      ending = run_steps(training.trainer, files, parts, log, interrupt, hooks);
    });
  }
  void save(bool failed = false) {
    TrainingLog none("", TrainingLog::Earlier::kept);
    listen([&] { save_model(training.trainer, files, parts, none, "orrery line", failed); });
  }
  // Runs f, whose stderr goes to `heard`.
  void listen(const std::function<void()>& f) {
    std::ostringstream text;
    struct RestoredStderr {  // also if f throws what is no Error
      std::streambuf* before;
      ~RestoredStderr() { std::cerr.rdbuf(before); }
    };
    const RestoredStderr restored{std::cerr.rdbuf(text.rdbuf())};
    try {
      f();
    } catch (const Error& error) { problem = error.what(); }
    heard += text.str();
  }
  double a() const { return training.task.a.value().item(); }
  double saved_a() const { return read_safetensors(files.model()).tensors.at("a").item(); }

  LineTraining training;
  TrainingFiles files;
  SavedParts parts{.save_model =
                       [this](const std::string& path) {
                         write_safetensors(path, {{"a", training.task.a.value()}, {"b", training.task.b.value()}});
                       },
                   .origin = {}};
  Ending ending = Ending::finished;
  std::string heard, problem;
};

}  // namespace orrery::small
