// Chapter 9. Charts: data stand where their axes say.
#include "apps/show/figure/chart.h"

#include <doctest/doctest.h>

#include "tests/core/support.h"

using namespace orrery;

TEST_CASE("places are linear, or linear in the logarithm, and end at the frame") {
  Svg svg(300, 200, "");
  Chart chart(svg, {.x = 50, .y = 20, .width = 200, .height = 100},
              {.name = "step", .low = 1, .high = 100, .ticks = {{10, "ten"}}, .logarithmic = true},
              {.name = "loss", .low = -1, .high = 3, .ticks = {{0, "zero"}}});
  CHECK(chart.place(10, 1).x == 150);
  CHECK(chart.place(10, 1).y == 70);
  CHECK(chart.place(1000, -7).x == 250);
  CHECK(chart.place(1000, -7).y == 120);
  chart.curve({{1, -1}, {10, 3}}, Ink::mark);
  const std::string text = svg.str();
  CHECK(text.find("<path class=\"mark line\" d=\"M50 120 L150 20\" stroke-width=\"2\"/>") != text.npos);
  for (const std::string words : {">ten<", ">zero<", ">step<", ">loss<"}) CHECK(text.find(words) != text.npos);
}

TEST_CASE("an axis without length is an error, and so is a logarithmic one from 0 on") {
  Svg svg(100, 100, "");
  const Area area{.width = 10, .height = 10};
  CHECK(small::error_of([&] { Chart(svg, area, {.name = "x", .low = 1, .high = 1}, {}); }) ==
        "figure: the axis 'x' from 1 to 1 has no length");
  CHECK(small::error_of([&] { Chart(svg, area, {}, {.name = "y", .low = 0, .logarithmic = true}); }) ==
        "figure: the logarithmic axis 'y' begins at 0, which is not above 0");
}
