// Chapter 9. SVG: shapes become elements, texts are escaped, and both kinds of page have colours.
#include "apps/show/figure/svg.h"

#include <doctest/doctest.h>

#include <limits>

#include "tests/apps/chromium.h"
#include "tests/core/support.h"

using namespace orrery;

TEST_CASE("shapes and texts become elements in their order") {
  Svg svg(100, 50.5, "A & B");
  svg.rectangle(1, 2, 3, 4, Ink::mark, 0.25);
  svg.line(0, 0, 9.999, 1, Ink::frame);
  svg.text(5, 6, "x < y", Ink::note, 11, Anchor::end);
  const std::string text = svg.str();
  CHECK(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"50.5\""));
  CHECK(text.find("<title>A &amp; B</title>") != text.npos);
  CHECK(text.find("prefers-color-scheme: dark") != text.npos);
  CHECK(
      text.ends_with("<rect class=\"mark\" x=\"1\" y=\"2\" width=\"3\" height=\"4\" fill-opacity=\"0.25\"/>\n"
                     "<path class=\"frame line\" d=\"M0 0 L10 1\"/>\n"
                     "<text class=\"note\" x=\"5\" y=\"6\" font-size=\"11\" text-anchor=\"end\">x &lt; y</text>\n"
                     "</svg>\n"));
}

TEST_CASE("lines have a width, may be dashed, and are not filled") {
  Svg svg(100, 50, "");
  svg.polyline({{0, 0}, {5, 5}, {10, 0}}, Ink::second, {.width = 2, .dashed = true});
  svg.box(1, 2, 3, 4);
  svg.circle(5, 6, 2.5, Ink::mark, 0.5);
  const std::string text = svg.str();
  CHECK(text.find(".line { fill: none; stroke: currentColor") != text.npos);
  CHECK(
      text.ends_with("<path class=\"second line\" d=\"M0 0 L5 5 L10 0\" stroke-width=\"2\" "
                     "stroke-dasharray=\"4 3\"/>\n"
                     "<path class=\"frame line\" d=\"M1 2 L4 2 L4 6 L1 6 L1 2\"/>\n"
                     "<circle class=\"mark\" cx=\"5\" cy=\"6\" r=\"2.5\" fill-opacity=\"0.5\"/>\n</svg>\n"));
  CHECK(small::error_of([&] { svg.polyline({{1, 1}}, Ink::mark); }) == "figure: a line needs two points, has 1");
}

TEST_CASE("a coordinate that is not a number is an error") {
  Svg svg(10, 10, "");
  CHECK(small::error_of([&] { svg.line(0, 0, std::numeric_limits<double>::quiet_NaN(), 1, Ink::frame); }) ==
        "figure: a coordinate is not finite");
}

TEST_CASE("foreign words send no commands to a terminal on which a picture is printed") {
  Svg svg(10, 10, "a\x1B[31m");
  svg.text(1, 2, "b\n\x1B\xC2\x9B", Ink::note);
  CHECK(svg.str().find("<title>a?[31m</title>") != std::string::npos);
  // In two pieces, since ??< in one would be a trigraph.
  CHECK(svg.str().find(">b\\n?"
                       "?</text>") != std::string::npos);
}

TEST_CASE("browser: a picture that is opened by itself lies on a dark page where the browser prefers dark") {
  Svg svg(200, 100, "title");
  svg.text(10, 50, "light letters", Ink::text);
  const std::string dark = browser::corner_of("picture.svg", svg.str(), true),
                    light = browser::corner_of("picture.svg", svg.str(), false);
  CHECK(light == "255,255,255");
  REQUIRE(!dark.empty());
  CHECK(std::stoi(dark) < 64);
}
