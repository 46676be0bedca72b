// Chapter 9. The log of a training: its steps, at most ten a second, and its evaluations, a line each.
#pragma once

#include <optional>
#include <string>

#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"
#include "apps/training/trainer.h"
#include "core/files/file.h"
#include "core/files/json.h"

namespace orrery {

/// The name of the log in the folder of `--save FOLDER/`.
inline constexpr const char* log_in_folder = "log.jsonl";

/// The log of a training: one JSON object a line, for `orrery report` and other programs that draw curves.
///   {"start":"lm","after_step":0,"steps":2000,"parameters":804096,"unit":"tokens","options":{"layers":4,...}}
///   {"step":250,"loss":2.31,"rate":0.001,"tokens_per_s":41200,"seconds":6.2}
///   {"step":250,"validation":2.25,"best":true,"seconds":6.9}          the score that judges; others as "scores":{...};
///                                                             "higher":"accuracy" if a higher one is better
///   {"step":250,"sample":"  3.1 bits per character ...\n  it writes: ..."}
///   {"step":800,"steps":1950,"options":{...}}      a plan that has changed (Trainer::plan)
///   {"step":2000,"score":"validation loss","value":1.88}
/// Seconds count from the moment at which this object opens the log, just before the first step. The speed is that of
/// the steps since the last line, without evaluations and saving; `tokens_per_s` counts what "unit" says. At most ten
/// steps a second have a line. A training that is resumed has a further line with "start". One that was killed before
/// makes some steps again: of two lines for a step, the later one counts. A power failure may leave zeros in place of
/// the first lines; the log goes on after them, and readers leave out what is no line.
class TrainingLog {
 public:
  /// What happens to a log that is there already. With `kept`, it is an error that there is one.
  enum class Earlier { kept, continued, replaced };
  /// Opens the file. With the path "", nothing is written. Errors: it cannot be written; another process is writing it;
  /// it holds something other than a log; it holds a log that is to be `kept`.
  TrainingLog(const std::string& path, Earlier earlier, Clock clock = steady_seconds);
  /// The first line of this run; `options` are those of the training as JSON, "" for none. It is written together with
  /// the next line: at the end of a log that is continued, or at the beginning of one that was emptied.
  void start(const Trainer& trainer, const std::string& options);
  /// What has changed since the start.
  void plan(const Trainer& trainer, const std::string& options);
  /// Call it when a step begins: its speed counts from here.
  void begin_step() { step_begin_ = clock_(); }
  /// At most ten steps a second are written. The latest one that was left out comes before the next line of another
  /// kind, and before the end.
  void step(i64 step, const StepResult& result);
  /// Writes the latest step if it was left out for that reason.
  void write_left_out();
  void evaluation(i64 step, const std::vector<Score>& scores, bool best);
  void sample(i64 step, const std::string& text);
  /// A number by which the trained model is judged, such as "exact match".
  void score(i64 step, const std::string& name, double value);
  /// The file, as it was given; "" if nothing is written.
  const std::string& path() const { return path_; }
  /// Whether lines are written: false also after a line that could not be written.
  bool used() const { return file_.has_value(); }
  /// Why a line could not be written; "" if all were.
  const std::string& problem() const { return problem_; }
  /// Writes the latest step if it was left out, and closes the log. Error: a line could not be written.
  void end();

 private:
  void write(const Json& line);

  std::string path_, problem_, start_line_;  // the line of `start`, until it is written
  bool continues_;
  std::optional<AppendedFile> file_;
  struct TimedStep {
    i64 step;
    StepResult result;
    double seconds;
  };
  std::optional<TimedStep> left_out_;
  Clock clock_;
  double start_, step_begin_;
  double last_ = 0;  // seconds of the last step that has a line
  // Of the steps since then.
  double step_seconds_ = 0;
  i64 items_ = 0;
};

}  // namespace orrery
