// Chapter 9. The progress of a run: one line that is drawn again and again on a terminal, plain lines in a file or
// pipe.
//
//   step 1500/3000  loss 0.8123  validation 0.7001  accuracy 98.1 %  rate 1.2e-03  45123 tokens/s  12 s left
// If the terminal is too narrow, the rate is left out, then the speed, the accuracy, and the validation loss. So the
// remaining time is never cut off.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>

#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "core/dtype.h"

namespace orrery {

/// Seconds since some fixed moment. Tests bring their own.
using Clock = std::function<double()>;

/// One line of a terminal, drawn again and again. If the output is not a terminal, nothing is drawn.
class LiveLine {
 public:
  LiveLine(std::ostream& out, Terminal terminal, Clock clock = steady_seconds)
      : out_(out), terminal_(terminal), clock_(std::move(clock)) {}
  ~LiveLine() { clear(); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  /// Shows `text`, cut off at the width. Does nothing if the line was drawn less than a tenth of a second ago.
  void show(const std::string& text);
  /// Erases the line, so that other text can be written.
  void clear();

 private:
  void draw(const std::string& text);

  std::ostream& out_;
  Terminal terminal_;
  Clock clock_;
  double drawn_at_ = -1;
  size_t drawn_ = 0;  // characters that are on the line
};

/// The results of a training step.
struct StepReport {
  i64 step = 0;                        ///< counted from 1
  double loss = 0;                     ///< per counted item, such as a target token
  std::optional<double> accuracy{};    ///< share of these predicted correctly, 0 to 1
  double rate = 0;                     ///< learning rate
  i64 items = 0;                       ///< read in this step
  std::optional<double> validation{};  ///< the score of the last evaluation, if there was one
};

/// The progress of a training run of `total` steps, of which `done_before` were made by an earlier run.
class Progress {
 public:
  Progress(std::ostream& out, Terminal terminal, i64 total, i64 done_before = 0, Clock clock = steady_seconds);
  /// The run ends after this many seconds, also without its last step; 0: no limit.
  void set_limit(double seconds) { limit_ = seconds; }
  /// The run is planned to take this many seconds, however many steps it has then; 0: no such plan.
  void set_plan(double seconds) { planned_ = seconds; }
  /// What is counted, such as "images", instead of "tokens".
  void set_unit(const std::string& unit) { unit_ = unit; }
  /// The run has this many steps in all.
  void set_total(i64 total) { total_ = total; }
  /// Call it after every step. In a file or pipe it prints a line after each tenth of the steps.
  void update(const StepReport& report);
  /// Prints a separate line, such as the result of an evaluation.
  void note(const std::string& text);

 private:
  std::string line(const StepReport& report) const;

  std::ostream& out_;
  Clock clock_;
  LiveLine live_;
  bool plain_;
  size_t width_;
  i64 total_, done_before_;
  std::string unit_ = "tokens";
  i64 items_ = 0;
  double start_, limit_ = 0, planned_ = 0;
  i64 tenths_of_time_ = 0;  // that had a line
};

/// Such as "12 s", "3 min 20 s", "2 h 05 min".
std::string duration(double seconds);

}  // namespace orrery
