// Chapter 9. SVG: shapes become elements, texts are escaped, and both kinds of page have colours.
#include "apps/figure/svg.h"

#include <doctest/doctest.h>

#include <limits>

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
                     "<path class=\"frame\" d=\"M0 0 L10 1\"/>\n"
                     "<text class=\"note\" x=\"5\" y=\"6\" font-size=\"11\" text-anchor=\"end\">x &lt; y</text>\n"
                     "</svg>\n"));
}

TEST_CASE("a coordinate that is no number is an error") {
  Svg svg(10, 10, "");
  CHECK(small::error_of([&] { svg.line(0, 0, std::numeric_limits<double>::quiet_NaN(), 1, Ink::frame); }) ==
        "figure: a coordinate is not finite");
}
