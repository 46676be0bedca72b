// Chapter 9. SVG: shapes as elements, numbers with at most two decimals, texts escaped.
//
// Serves: apps/toy/toy.cpp
#include "apps/figure/svg.h"

#include <array>
#include <cmath>
#include <sstream>

#include "core/error.h"

namespace orrery {
namespace {

constexpr std::string_view style = R"(<style>
  text { font-family: system-ui, sans-serif }
  .text { fill: #1f2328 } .note { fill: #59636e } .frame { fill: none; stroke: #d1d9e0 }
  .mark { fill: #0969da } .beside { fill: #afb8c1 }
  @media (prefers-color-scheme: dark) {
    .text { fill: #f0f6fc } .note { fill: #9198a1 } .frame { stroke: #3d444d }
    .mark { fill: #58a6ff } .beside { fill: #656c76 }
  }
</style>
)";

std::string_view name_of(Ink ink) {
  constexpr std::array<std::string_view, 5> names{"text", "note", "frame", "mark", "beside"};
  return names[static_cast<size_t>(ink)];
}

std::string_view name_of(Anchor anchor) {
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

std::string escaped(const std::string& words) {
  std::string result;
  for (const char c : words) {
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

}  // namespace

Svg::Svg(double width, double height, const std::string& title) {
  const std::string w = number(width), h = number(height);
  head_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + w + "\" height=\"" + h + "\" viewBox=\"0 0 " + w +
          ' ' + h + "\" role=\"img\">\n<title>" + escaped(title) + "</title>\n" + std::string(style);
}

void Svg::rectangle(double x, double y, double width, double height, Ink ink, double opacity) {
  body_ += "<rect class=\"" + std::string(name_of(ink)) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
           "\" width=\"" + number(width) + "\" height=\"" + number(height) + '"';
  if (opacity != 1) body_ += " fill-opacity=\"" + number(opacity) + '"';
  body_ += "/>\n";
}

void Svg::line(double x1, double y1, double x2, double y2, Ink ink) {
  body_ += "<path class=\"" + std::string(name_of(ink)) + "\" d=\"M" + number(x1) + ' ' + number(y1) + " L" +
           number(x2) + ' ' + number(y2) + "\"/>\n";
}

void Svg::text(double x, double y, const std::string& words, Ink ink, double size, Anchor anchor) {
  body_ += "<text class=\"" + std::string(name_of(ink)) + "\" x=\"" + number(x) + "\" y=\"" + number(y) +
           "\" font-size=\"" + number(size) + '"';
  if (anchor != Anchor::start) body_ += " text-anchor=\"" + std::string(name_of(anchor)) + '"';
  body_ += '>' + escaped(words) + "</text>\n";
}

std::string Svg::str() const { return head_ + body_ + "</svg>\n"; }

}  // namespace orrery
