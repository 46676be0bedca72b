// Chapter 9. What trainings wrote, told apart: logs, models, and scores of translations; and a log's curves.
//
// Each line of a log is a JSON object (apps/training/training_log.h). A program that is killed may leave half a line;
// such lines are counted and left out. A training that was resumed has several starts, each with seconds from 0: its
// time here is the sum, without the steps that were made again.
// One chart for each number and each axis has all logs over each other.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/show/figure/svg.h"
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
  std::string unit = "tokens";    ///< what `tokens_per_s` counts
  i64 steps = 0, parameters = 0;  ///< as planned; 0 if the log does not say
  Options options{};
  Curve loss{}, validation{}, rate{}, units_per_second{};
  std::vector<LoggedSample> samples{};
  std::vector<NamedScore> scores{};
  std::string judged_by = "validation loss";  ///< what `validation` is
  bool higher_is_better = false;
  i64 left_out = 0, first_left_out = 0;  ///< lines that are damaged or of another kind; the first of them, from 1
  bool is_cut_off = false;               ///< the last line has no end, and is the first one left out
  i64 not_finite = 0;                    ///< losses that are NaN or infinite

  /// Of `validation`, the last of those that are as good, which training keeps; nothing if it is empty.
  std::optional<CurvePoint> best() const;
  i64 last_step() const;
  double seconds() const;
};

/// Reads a log. Errors: the file cannot be read, is empty, or has no line of a training's log.
RunLog read_run_log(const std::string& path);

/// A model or an unfinished training, as its file describes it.
struct SavedModel {
  std::string path;
  Options options{};  ///< of its training; empty if the file does not say
};

/// What `orrery translate score --json FILE` wrote.
struct ScoreFile {
  std::string path;  ///< of the translation
  std::vector<NamedScore> scores;
};

struct RunFiles {
  std::vector<RunLog> logs{};
  std::vector<SavedModel> models{};
  std::vector<ScoreFile> scores{};
  std::vector<std::string> notes{};  ///< what is left out or damaged, in a sentence each
  std::vector<std::string> paths{};  ///< of all files that were read
};

/// The most logs that one page draws over each other.
inline constexpr size_t most_logs = 8;

/// Reads files of these kinds, and folders of them, in which other files are left out. Errors: a file of no kind; a
/// folder without any; more than `most_logs` logs.
RunFiles read_run_files(const std::vector<std::string>& paths);

/// The report as one page for a browser, which needs no network and has no script: a table of the logs, their curves,
/// scores, samples and configurations. Options that differ stand out.
std::string report_page(const RunFiles& files);

/// How the curve of log number `i`, from 0, is drawn: eight ways.
struct CurveStyle {
  Ink ink = Ink::mark;
  Stroke stroke{};
};
CurveStyle style_of(size_t i);
/// A short line in this style, as SVG, for a legend.
std::string legend_line(size_t i);

/// What a chart shows of each log.
struct CurveKind {
  std::string title;
  Curve RunLog::*curve;
  bool from_zero = false;   ///< the axis begins at 0
  bool marks_best = false;  ///< a circle at the best point; the title is `common_score`
};
const std::vector<CurveKind>& curve_kinds();

/// The unit of their speed, such as "tokens/s"; "items/s" if it is not the same.
std::string common_speed(const std::vector<RunLog>& logs);
/// What all logs are judged by, such as "validation loss"; "score" if it is not the same.
std::string common_score(const std::vector<RunLog>& logs);

enum class Against { steps, time };
/// The chart as SVG; "" if no log has such a curve. A curve of many points is drawn through the means of neighbours.
std::string draw_curves(const std::vector<RunLog>& logs, const CurveKind& kind, Against against);

/// An axis from `low` to `high` or a little beyond, with four to eight ticks at round numbers.
Axis round_axis(const std::string& name, double low, double high);
/// At most `most` points: each the mean of as many neighbours, the last one of what is left.
Curve thinned(const Curve& curve, size_t most);

}  // namespace orrery::run_report
