// Chapter 9. The curves of trainings: one chart for each number and each axis, all logs over each other.
#pragma once

#include <string>
#include <vector>

#include "apps/show/figure/svg.h"
#include "apps/show/report/run_log.h"

namespace orrery::run_report {

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
