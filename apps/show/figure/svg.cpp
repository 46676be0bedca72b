// Chapter 9. SVG: shapes as elements, numbers with at most two decimals, texts escaped.
#include "apps/show/figure/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "core/error.h"

namespace orrery {
namespace {

// With color-scheme, a browser in dark mode that shows the picture alone puts it on a dark page.
constexpr std::string_view style = R"(<style>
  svg { color-scheme: light dark }
  text { font-family: system-ui, sans-serif }
  .text, .note, .mark, .beside, .second { fill: currentColor }
  .frame, .line { fill: none; stroke: currentColor; stroke-linejoin: round }
  .text { color: #1f2328 } .note { color: #59636e } .frame { color: #d1d9e0 }
  .mark { color: #0969da } .beside { color: #afb8c1 } .second { color: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    .text { color: #f0f6fc } .note { color: #9198a1 } .frame { color: #3d444d }
    .mark { color: #58a6ff } .beside { color: #656c76 } .second { color: #f0883e }
  }
</style>
)";

std::string_view class_of(Ink ink) {
  constexpr std::array<std::string_view, 6> names{"text", "note", "frame", "mark", "beside", "second"};
  return names[static_cast<size_t>(ink)];
}

std::string_view value_of(Anchor anchor) {
  constexpr std::array<std::string_view, 3> names{"start", "middle", "end"};
  return names[static_cast<size_t>(anchor)];
}

// "12", "12.5", "0.25": two decimals are a hundredth of a pixel.
std::string number(double x) {
  check(std::isfinite(x), "figure", "a coordinate is not finite");
  std::ostringstream out;
  out << std::round(x * 100) / 100;
  return out.str();
}

// "M0 0 L10 1 L10 5": from point to point.
std::string moves(const std::vector<Point>& points) {
  std::string result;
  for (const Point& point : points) result += (result.empty() ? "M" : " L") + number(point.x) + ' ' + number(point.y);
  return result;
}

}  // namespace

std::string in_markup(const std::string& words) {
  std::string result;
  for (const char c : harmless(words)) {
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

Svg::Svg(double width, double height, const std::string& title) {
  const std::string w = number(width), h = number(height);
  head_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w +
          ' ' + h + "\" role=\"img\">\n<title>" + in_markup(title) + "</title>\n" + std::string(style);
}

void Svg::rectangle(double x, double y, double width, double height, Ink ink, double opacity) {
  body_ += "<rect class=\"" + std::string(class_of(ink)) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
           "\" width=\"" + number(width) + "\" height=\"" + number(height) + '"';
  if (opacity != 1) body_ += " fill-opacity=\"" + number(opacity) + '"';
  body_ += "/>\n";
}

void Svg::box(double x, double y, double width, double height, Ink ink, Stroke stroke) {
  polyline({{x, y}, {x + width, y}, {x + width, y + height}, {x, y + height}, {x, y}}, ink, stroke);
}

void Svg::line(double x1, double y1, double x2, double y2, Ink ink, Stroke stroke) {
  polyline({{x1, y1}, {x2, y2}}, ink, stroke);
}

void Svg::polyline(const std::vector<Point>& points, Ink ink, Stroke stroke) {
  check(points.size() >= 2, "figure", "a line needs two points, has ", points.size());
  path(moves(points), std::string(class_of(ink)) + " line", stroke);
}

void Svg::path(const std::string& commands, const std::string& classes, const Stroke& stroke) {
  body_ += "<path class=\"" + classes + "\" d=\"" + commands + '"';
  if (stroke.width != 1) body_ += " stroke-width=\"" + number(stroke.width) + '"';
  if (stroke.dashed) body_ += " stroke-dasharray=\"4 3\"";
  body_ += "/>\n";
}

void Svg::circle(double x, double y, double radius, Ink ink, double opacity) {
  body_ += "<circle class=\"" + std::string(class_of(ink)) + "\" cx=\"" + number(x) + "\" cy=\"" + number(y) +
           "\" r=\"" + number(radius) + '"';
  if (opacity != 1) body_ += " fill-opacity=\"" + number(opacity) + '"';
  body_ += "/>\n";
}

void Svg::text(double x, double y, const std::string& words, Ink ink, double size, Anchor anchor) {
  body_ += "<text class=\"" + std::string(class_of(ink)) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
           "\" font-size=\"" + number(size) + '"';
  if (anchor != Anchor::start) body_ += " text-anchor=\"" + std::string(value_of(anchor)) + '"';
  body_ += '>' + in_markup(words) + "</text>\n";
}

std::string Svg::str() const { return head_ + body_ + "</svg>\n"; }

namespace {

// How far a number is along its axis, from 0 to 1.
double part_of(const Axis& axis, double number) {
  return (std::clamp(number, axis.low, axis.high) - axis.low) / (axis.high - axis.low);
}

void check_axis(const Axis& axis) {
  check(axis.low < axis.high, "figure", "the axis '", axis.name, "' from ", axis.low, " to ", axis.high,
        " has no length");
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
