// Chapter 9. Drawing the curves of trainings.
#include "apps/show/report/run_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

namespace orrery::run_report {
namespace {

constexpr size_t most_points = 250;

// "0.0005", "1.5", "2000000".
std::string short_number(double x) {
  if (std::abs(x) >= 1e5 && std::abs(x) < 1e15) return std::to_string(std::llround(x));
  std::ostringstream out;
  out << x;
  return out.str();
}

// Seconds, minutes or hours, whichever suits the longest time.
struct TimeUnit {
  std::string name;
  double seconds;
};
TimeUnit unit_for(double seconds) {
  if (seconds > 3 * 3600) return {"time, hours", 3600};
  if (seconds > 3 * 60) return {"time, minutes", 60};
  return {"time, seconds", 1};
}

struct Range {
  double low = 0, high = 0;
  bool is_empty = true;
  void add(double x) {
    low = is_empty ? x : std::min(low, x);
    high = is_empty ? x : std::max(high, x);
    is_empty = false;
  }
};

}  // namespace

CurveStyle style_of(size_t i) {
  static constexpr std::array<Ink, 4> inks{Ink::mark, Ink::second, Ink::text, Ink::beside};
  return {inks[i % inks.size()], {.width = 1.8, .dashed = i >= inks.size()}};
}

std::string legend_line(size_t i) {
  Svg svg(34, 12, "curve " + std::to_string(i + 1));
  const CurveStyle style = style_of(i);
  svg.line(1, 6, 33, 6, style.ink, {.width = 3, .dashed = style.stroke.dashed});
  return svg.str();
}

const std::vector<CurveKind>& curve_kinds() {
  static const std::vector<CurveKind> kinds{{"training loss", &RunLog::loss},
                                            {"validation loss", &RunLog::validation, false, true},
                                            {"learning rate", &RunLog::rate, true},
                                            {"tokens/s", &RunLog::units_per_second, true}};
  return kinds;
}

std::string common_score(const std::vector<RunLog>& logs) {
  const std::string& first = logs.at(0).judged_by;
  return std::all_of(logs.begin(), logs.end(), [&](const RunLog& log) { return log.judged_by == first; }) ? first
                                                                                                          : "score";
}

std::string common_speed(const std::vector<RunLog>& logs) {
  const std::string& first = logs.at(0).unit;
  const bool common = std::all_of(logs.begin(), logs.end(), [&](const RunLog& log) { return log.unit == first; });
  return (common ? first : "items") + "/s";
}

Axis round_axis(const std::string& name, double low, double high) {
  const double largest = std::max(std::abs(low), std::abs(high));
  if (!(high - low > std::max(1e-300, 1e-9 * largest))) {  // one number, or two too close for ticks
    const double around = largest < 1e-300 ? 1 : largest / 10;
    low -= around;
    high += around;
  }
  constexpr double most_intervals = 7;
  const double power = std::pow(10, std::floor(std::log10((high - low) / most_intervals)));
  double step = 0, first = 0, last = 0;
  for (const double digit : {1.0, 2.0, 5.0, 10.0, 20.0}) {
    step = digit * power;
    first = std::floor(low / step + 1e-9);
    last = std::ceil(high / step - 1e-9);
    if (last - first <= most_intervals) break;
  }
  Axis axis{.name = name, .low = first * step, .high = last * step};
  for (double i = first; i <= last; ++i) axis.ticks.push_back({i * step, short_number(i * step)});
  return axis;
}

Curve thinned(const Curve& curve, size_t most) {
  const size_t neighbours = (curve.size() + most - 1) / most;
  Curve result;
  for (size_t begin = 0; begin < curve.size(); begin += neighbours) {
    const size_t end = std::min(curve.size(), begin + neighbours);
    const double count = static_cast<double>(end - begin);
    CurvePoint mean = curve[begin + (end - begin) / 2];  // its step is that of the middle
    mean.seconds = mean.value = 0;
    for (size_t i = begin; i < end; ++i) {
      mean.seconds += curve[i].seconds / count;
      mean.value += curve[i].value / count;
    }
    result.push_back(mean);
  }
  return result;
}

std::string draw_curves(const std::vector<RunLog>& logs, const CurveKind& kind, Against against) {
  std::vector<Curve> curves;
  Range along, values;
  for (const RunLog& log : logs) {
    curves.push_back(kind.marks_best ? log.*kind.curve : thinned(log.*kind.curve, most_points));
    for (const CurvePoint& point : curves.back()) {
      along.add(against == Against::steps ? static_cast<double>(point.step) : point.seconds);
      values.add(point.value);
    }
  }
  if (values.is_empty) return "";
  const TimeUnit unit = against == Against::steps ? TimeUnit{"step", 1} : unit_for(along.high);
  const auto x_of = [&](const CurvePoint& point) {
    return against == Against::steps ? static_cast<double>(point.step) : point.seconds / unit.seconds;
  };
  constexpr double width = 560, height = 250, left = 62, right = 22, top = 30, bottom = 44;
  const std::string title = kind.marks_best                           ? common_score(logs)
                            : kind.curve == &RunLog::units_per_second ? common_speed(logs)
                                                                      : kind.title;
  Svg svg(width, height, title + " against " + (against == Against::steps ? "steps" : "time"));
  Chart chart(svg, {left, top, width - left - right, height - top - bottom},
              round_axis(unit.name, 0, along.high > 0 ? along.high / unit.seconds : 1),
              round_axis(title, kind.from_zero ? std::min(0.0, values.low) : values.low, values.high));
  for (size_t i = 0; i < curves.size(); ++i) {
    const CurveStyle style = style_of(i);
    std::vector<Point> points;
    for (const CurvePoint& point : curves[i]) points.push_back({x_of(point), point.value});
    if (points.size() > 1) chart.curve(points, style.ink, style.stroke);
    std::optional<CurvePoint> marked = kind.marks_best ? logs[i].best() : std::nullopt;
    if (points.size() == 1) marked = curves[i][0];
    if (!marked) continue;
    const Point place = chart.place(x_of(*marked), marked->value);
    svg.circle(place.x, place.y, 4, style.ink);
  }
  return svg.str();
}

}  // namespace orrery::run_report
