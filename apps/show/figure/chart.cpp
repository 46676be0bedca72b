// Chapter 9. Charts: from data to places on the page.
#include "apps/show/figure/chart.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace orrery {
namespace {

// How far a number is along its axis, from 0 to 1.
double part_of(const Axis& axis, double number) {
  const auto scaled = [&](double x) { return axis.logarithmic ? std::log10(x) : x; };
  const double inside = std::clamp(number, axis.low, axis.high);
  return (scaled(inside) - scaled(axis.low)) / (scaled(axis.high) - scaled(axis.low));
}

void check_axis(const Axis& axis) {
  check(axis.low < axis.high, "figure", "the axis '", axis.name, "' from ", axis.low, " to ", axis.high,
        " has no length");
  check(!axis.logarithmic || axis.low > 0, "figure", "the logarithmic axis '", axis.name, "' begins at ", axis.low,
        ", which is not above 0");
}

}  // namespace

Chart::Chart(Svg& svg, const Area& area, Axis x, Axis y) : svg_(svg), area_(area), x_(std::move(x)), y_(std::move(y)) {
  check_axis(x_);
  check_axis(y_);
  const double bottom = area_.y + area_.height, right = area_.x + area_.width;
  for (const Tick& tick : x_.ticks) {
    const double at = place(tick.at, y_.low).x;
    svg_.line(at, area_.y, at, bottom, Ink::frame);
    svg_.text(at, bottom + 16, tick.label, Ink::note, 11, Anchor::middle);
  }
  for (const Tick& tick : y_.ticks) {
    const double at = place(x_.low, tick.at).y;
    svg_.line(area_.x, at, right, at, Ink::frame);
    svg_.text(area_.x - 7, at + 4, tick.label, Ink::note, 11, Anchor::end);
  }
  svg_.box(area_.x, area_.y, area_.width, area_.height);
  svg_.text(right, bottom + 33, x_.name, Ink::note, 12, Anchor::end);
  svg_.text(area_.x, area_.y - 9, y_.name, Ink::note, 12);
}

Point Chart::place(double x, double y) const {
  return {area_.x + part_of(x_, x) * area_.width, area_.y + (1 - part_of(y_, y)) * area_.height};
}

void Chart::curve(const std::vector<Point>& data, Ink ink, Stroke stroke) {
  std::vector<Point> points;
  for (const Point& point : data) points.push_back(place(point.x, point.y));
  svg_.polyline(points, ink, stroke);
}

}  // namespace orrery
