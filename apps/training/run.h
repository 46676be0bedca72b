// Chapter 9. The loop of every training program: steps, a progress line, evaluations, files, Ctrl-C, a time limit.
//
// Serves: apps/toy/toy.cpp
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "apps/program/interrupt.h"
#include "apps/training/training_files.h"
#include "apps/training/training_log.h"

namespace orrery {

/// How a training ended, for tests: what a program does next depends on `Trainer::finished` alone.
enum class Ending { finished, stopped, out_of_patience, out_of_time };

struct RunHooks {
  /// A line to print after an evaluation, such as a sample of what the model writes; "" prints none.
  std::function<std::string()> after_evaluation{};
  /// Called after every step, before its line is printed. It may change how many steps there are.
  std::function<void(const StepResult&)> after_step{};
  /// The steps are planned to take so many seconds, however many they are; 0: no such plan.
  double planned_seconds = 0;
};

/// Trains to the recipe's last step, or until Ctrl-C, the time limit or the recipe's patience ends it. Evaluates as the
/// recipe says, and saves after each evaluation and when it is stopped, except at a step whose evaluation was not
/// finite: the state before it is better. The log gets the options under `options_key` in `parts`, and as samples the
/// lines printed after evaluations. A save that fails, and a log that cannot be written any more, are reported, and the
/// training continues. Errors: those of `Trainer::step` and of `TrainingFiles::check_texts`.
Ending run_steps(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                 const Interrupt& interrupt, const RunHooks& hooks = {});

/// Writes the model as it is, and says so; or the best one, if something failed before the model got the parameters to
/// save (`Trainer::ended`). If the training is unfinished, prints how to resume it with `command`, unless it `failed`.
/// Ends the log. Errors: the model is not saved; the log is not whole.
void save_model(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                const std::string& command, bool failed);
/// Prints how far an unfinished training is, and how to resume it and its log with `command`, such as "orrery lm
/// train", unless it `failed`; and from which step, if the state of an earlier one is all that could be kept.
void print_stopped(const Trainer& trainer, const TrainingFiles& files, const TrainingLog& log,
                   const std::string& command, bool failed);
/// Whether no step was made after `steps_before`, although some are left: then the files stay as they are. Says so, or
/// throws `failure` if there is one.
bool stopped_before_a_step(const Trainer& trainer, i64 steps_before, const TrainingFiles& files, const TrainingLog& log,
                           const std::string& command, const std::exception_ptr& failure);

}  // namespace orrery
