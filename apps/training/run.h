// Chapter 9. The loop of every training program: steps, a progress line, evaluations, files, Ctrl-C, a time limit.
//
// Serves: apps/toy/toy.cpp
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "apps/program/interrupt.h"
#include "apps/training/training_files.h"
#include "core/files/file.h"

namespace orrery {

/// The log of a training: one JSON object a line, for `orrery report` and other programs that draw curves.
///   {"start":"lm","after_step":0,"steps":2000,"parameters":804096,"options":{"layers":4,...}}
///   {"step":250,"loss":2.31,"rate":0.001,"tokens_per_s":41200,"seconds":6.2}
///   {"step":250,"validation":2.25,"best":true,"seconds":6.9}
///   {"step":250,"sample":"it writes: ..."}
///   {"step":800,"steps":1950,"options":{...}}      a plan that has changed (Trainer::plan)
///   {"step":2000,"score":"validation loss","value":1.88}
/// Seconds count from the moment at which this object opens the log, just before the first step. At most ten steps a
/// second have a line. A training that is resumed has a further line with "start". One that was killed before makes
/// some steps again: of two lines for a step, the later one counts.
class TrainingLog {
 public:
  /// Opens the file. With the path "", nothing is written. Errors: it cannot be written; another process is writing it;
  /// it holds something other than a log.
  TrainingLog(const std::string& path, bool continues);
  /// Appends to the file if the training continues, or else begins it anew. `options` are those of the training as
  /// JSON; "" writes none.
  void start(const Trainer& trainer, const std::string& options);
  /// What has changed since the start.
  void plan(const Trainer& trainer, const std::string& options);
  /// At most ten steps a second are written.
  void step(i64 step, const StepResult& result);
  /// Writes the latest step if it was left out for that reason.
  void write_left_out();
  void evaluation(i64 step, double loss, bool best);
  void sample(i64 step, const std::string& text);
  /// A number by which the trained model is judged, such as "exact match".
  void score(i64 step, const std::string& name, double value);
  /// Whether lines are written: false also after a line that could not be written.
  bool used() const { return file_.has_value(); }
  /// Why a line could not be written; "" if all were.
  const std::string& problem() const { return problem_; }
  /// Closes the log. Error: it is not whole.
  void end();

 private:
  void write(const std::string& line);

  std::string path_, problem_;
  bool continues_;
  std::optional<AppendedFile> file_;
  struct TimedStep {
    i64 step;
    StepResult result;
    double seconds;
  };
  std::optional<TimedStep> left_out_;
  double start_, last_ = 0;
  i64 tokens_ = 0;
};

/// How a training ended.
enum class Ending { finished, stopped, out_of_patience, out_of_time };

struct RunHooks {
  /// A line to print after an evaluation, such as a sample of what the model writes; "" prints none.
  std::function<std::string()> after_evaluation{};
  /// Called after every step, before its line is printed. It may change how many steps there are.
  std::function<void(const StepResult&)> after_step{};
};

/// Trains to the recipe's last step, or until Ctrl-C, the time limit or the recipe's patience ends it. Evaluates as the
/// recipe says, and saves after each evaluation and when it is stopped. The log gets the options under `options_key` in
/// `parts`, and the lines printed after evaluations as samples. A save that fails, and a log that cannot be
/// written any more, are reported, and the training continues. Errors: those of `Trainer::step` and of
/// `TrainingFiles::check_texts`.
Ending run_steps(Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                 const Interrupt& interrupt, const RunHooks& hooks = {});

/// Writes the model as it is, and says so. If the training is unfinished, prints how to resume it with `command`,
/// unless it `failed`. Ends the log. Errors: the model is not saved; the log is not whole.
void save_model(const Trainer& trainer, TrainingFiles& files, const SavedParts& parts, TrainingLog& log,
                const std::string& command, bool failed);
/// Prints how far an unfinished training is, and how to resume it with `command`, such as "orrery lm train".
void print_stopped(const Trainer& trainer, const TrainingFiles& files, const std::string& command, bool failed);

}  // namespace orrery
