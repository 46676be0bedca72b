// Chapter 9. The curves of a report: axes with round numbers, means of neighbours, and every log in its own style.
#include "apps/show/report/curves.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::run_report;

namespace {

RunLog falling_log(i64 points, double from) {
  RunLog log{.path = "log", .program = "lm"};
  for (i64 i = 1; i <= points; ++i) log.loss.push_back({i, static_cast<double>(60 * i), from / static_cast<double>(i)});
  return log;
}

const CurveKind& kind_of(const std::string& title) {
  for (const CurveKind& kind : curve_kinds())
    if (kind.title == title) return kind;
  FAIL("no kind of curve is called so");
  return curve_kinds()[0];
}

}  // namespace

TEST_CASE("an axis has four to eight ticks at round numbers, and holds what it must") {
  const Axis axis = round_axis("loss", 1.37, 4.2);
  CHECK(axis.low == 1);
  CHECK(axis.high == 4.5);
  CHECK(axis.ticks.front().label == "1");
  CHECK(axis.ticks[1].label == "1.5");
  for (const double high : {0.0007, 0.5, 3.0, 17.0, 99.0, 1234.0, 5e6})
    for (const double low : {0.0, 0.3 * high, 0.9 * high}) {
      const Axis some = round_axis("", low, high);
      CAPTURE(low);
      CAPTURE(high);
      CHECK(some.low <= low + 1e-9 * high);
      CHECK(some.high >= high - 1e-9 * high);
      CHECK(some.ticks.size() >= 4);
      CHECK(some.ticks.size() <= 8);
    }
  for (const double only : {0.0, 2.5, -3.0, 1e300}) {
    for (const double other : {only, std::nextafter(only, 4e300)}) {  // too close for ticks between them
      const Axis single = round_axis("", only, other);
      CHECK(single.low < only);
      CHECK(single.high > other);
      CHECK(single.ticks.size() <= 8);
    }
  }
}

TEST_CASE("many points become the means of neighbours, and few stay as they are") {
  const Curve curve{{1, 1, 4}, {2, 2, 2}, {3, 3, 9}, {4, 4, 1}, {5, 5, 7}};
  const Curve means = thinned(curve, 3);
  REQUIRE(means.size() == 3);
  CHECK(means[0].value == 3);
  CHECK(means[0].seconds == 1.5);
  CHECK(means[1].value == 5);
  CHECK(means[2].value == 7);
  CHECK(means[2].step == 5);
  CHECK(thinned(curve, 5).size() == 5);
  CHECK(thinned({}, 5).empty());
}

TEST_CASE("each of eight logs has a style of its own") {
  std::set<std::string> lines;
  for (size_t i = 0; i < 8; ++i) {
    std::string line = legend_line(i);
    lines.insert(line.substr(line.find("<path")));
  }
  CHECK(lines.size() == 8);
}

TEST_CASE("a chart has a curve for each log, against steps or the unit that fits the time") {
  const CurveKind& loss = kind_of("training loss");
  const std::vector<RunLog> logs{falling_log(100, 5), falling_log(1000, 4)};
  const std::string steps = draw_curves(logs, loss, Against::steps), time = draw_curves(logs, loss, Against::time);
  for (const std::string& svg : {steps, time}) {
    CHECK(small::contains(svg, "<path class=\"mark line\""));
    CHECK(small::contains(svg, "<path class=\"second line\""));
    CHECK(small::contains(svg, ">training loss<"));
  }
  CHECK(small::contains(steps, ">step<"));
  CHECK(small::contains(steps, ">1000<"));
  CHECK(small::contains(time, ">time, hours<"));
  CHECK(small::contains(draw_curves({falling_log(10, 5)}, loss, Against::time), ">time, minutes<"));
  CHECK(small::contains(draw_curves({falling_log(2, 5)}, loss, Against::time), ">time, seconds<"));
  CHECK(draw_curves(logs, kind_of("validation loss"), Against::steps) == "");
}

TEST_CASE("the lowest validation loss has a circle, and so has a curve of one point") {
  RunLog log{.path = "log", .program = "lm"};
  log.validation = {{10, 1, 3}, {20, 2, 1}, {30, 3, 2}};
  log.rate = {{10, 1, 0.5}};
  const std::string svg = draw_curves({log}, kind_of("validation loss"), Against::steps);
  CHECK(small::contains(svg, "<circle class=\"mark\" cx=\"379.33\""));
  CHECK(small::contains(draw_curves({log}, kind_of("learning rate"), Against::steps), "<circle"));
}
