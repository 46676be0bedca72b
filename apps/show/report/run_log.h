// Chapter 9. The log of a training, read for its curves.
//
// Each line is a JSON object (apps/training/training_log.h). A program that is killed may leave half a line; such lines
// are counted and left out. A training that was resumed has several starts, each with seconds from 0: its time here is
// the sum, without the steps that were made again.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"

namespace orrery::run_report {

/// A number of a training after some step.
struct CurvePoint {
  i64 step = 0;
  double seconds = 0, value = 0;
};
using Curve = std::vector<CurvePoint>;  // each step later than the one before

/// What the model wrote after a step.
struct LoggedSample {
  i64 step = 0;
  std::string text;
};

/// A number by which a model is judged.
struct NamedScore {
  std::string name;
  double value = 0;
};

/// Options with their values as text.
using Options = std::vector<std::pair<std::string, std::string>>;
/// The fields of a JSON object. Error: the text is not a JSON object.
Options options_of(const std::string& json);

struct RunLog {
  std::string path;
  std::string program;            ///< such as "lm"; "" if the log does not say
  i64 steps = 0, parameters = 0;  ///< as planned; 0 if the log does not say
  Options options{};
  Curve loss{}, validation{}, rate{}, tokens_per_second{};
  std::vector<LoggedSample> samples{};
  std::vector<NamedScore> scores{};
  std::string judged_by = "validation loss";  ///< what `validation` is
  bool higher_is_better = false;
  i64 left_out = 0, first_left_out = 0;  ///< lines that are damaged or of another kind; the first of them, from 1
  bool is_cut_off = false;               ///< the last line has no end, and is the first one left out
  i64 not_finite = 0;                    ///< losses that are NaN or infinite

  /// Of `validation`, the first of those that are as good; nothing if it is empty.
  std::optional<CurvePoint> best() const;
  i64 last_step() const;
  double seconds() const;
};

/// Reads a log. Errors: the file cannot be read, is empty, or has no line of a training's log.
RunLog read_run_log(const std::string& path);

}  // namespace orrery::run_report
