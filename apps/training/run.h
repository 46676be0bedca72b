// Chapter 9. The run of every training program: its start, steps, a progress line, evaluations, files, Ctrl-C, a time
// limit, and its end.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "apps/program/interrupt.h"
#include "apps/training/options.h"
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
  /// The steps are planned to take this many seconds, however many they are; 0: no such plan.
  double planned_seconds = 0;
  /// If it returns true before a step, the time limit is reached.
  std::function<bool()> is_out_of_time{};
};

/// Trains to the recipe's last step, or until Ctrl-C, the time limit or the recipe's patience ends it. Evaluates as the
/// recipe says, and saves after each evaluation and when it is stopped, except at a step whose evaluation was not
/// finite: the state before it is better. The log gets the options under `options_key` in `parts`, and as samples the
/// lines printed after evaluations. A save that fails, and a log that cannot be written any more, are reported, and the
/// training continues. Errors: those of `Trainer::step` and of `TrainingFiles::check_texts`; the training has diverged
/// (`Trainer::has_diverged`).
Ending run_steps(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                 const Interrupt& interrupt, const RunHooks& hooks = {});

/// Writes the model and says so: with its present parameters, or with the best ones if something failed before the
/// model got the parameters to save (`Trainer::ended`). Of an unfinished training it prints how far it is. Unless this
/// one `failed`, it also prints how to resume it and its log with `command`, such as "orrery lm train"; if only the
/// state of an earlier step could be kept, the line names that step. Ends the log. Errors: the model is not saved; the
/// log is not whole.
void save_model(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                const std::string& command, bool failed);

/// Calls `steps` and returns the exception it threw; null if it threw none.
std::exception_ptr failure_of(const std::function<void()>& steps);
/// What it says, in one line or several.
std::string message_of(const std::exception_ptr& failure);
/// Calls each part of a training's end, even if something failed before. Then throws `failure`, that of the steps; if
/// it is null, the failure of the first part that failed; if none failed, nothing. Prints the failures that it does not
/// throw.
void end_training(std::exception_ptr failure, const std::vector<std::function<void()>>& parts);

/// A training before its first step, with all that a program adds to it.
struct Training {
  std::string command;  ///< by which it is resumed, such as "orrery lm train"
  Trainer& trainer;     ///< with the state of the training that is resumed, if one is
  TrainingFiles& files;
  const SavedParts& parts;
  const RunOptions& options;
  const Interrupt& interrupt;
  double expected_seconds = 0;      ///< from now to the end, for the line at its start
  std::function<void()> started{};  ///< called when the first lines are printed
  RunHooks hooks{};
  /// Gives the model the parameters to save (`Trainer::end_with_best`), and prints what it can do now.
  std::function<Score()> report;
  /// Writes figures of what was reported; called after the model is saved, or could not be.
  std::function<void()> write_figures{};
};
/// A training from its first line to its last: prints its start, makes its steps, reports, and saves. If it made no
/// step and steps are left, or has diverged before its first evaluation, it neither reports nor saves, and the files
/// stay as they are. Of several ranks, the first one does what follows the steps. A failure does not keep the later
/// parts from being done, so that nothing is lost; the first one is thrown at the end. Returns the exit code: `done`,
/// or `interrupted` if steps are left, and on other ranks than the first.
int run_training(const Training& training);

}  // namespace orrery
