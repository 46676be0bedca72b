// Chapter 9. Tests of the progress line, with a clock of their own, and of the stopwatch.
#include "apps/program/progress.h"

#include <doctest/doctest.h>
#include <algorithm>
#include <sstream>

#include "apps/program/stopwatch.h"

using namespace orrery;

namespace {

const Terminal live{.live = true, .colours = true, .width = 120}, pipe_{};

StepReport report_of(i64 step) { return {.step = step, .loss = 0.5, .accuracy = 0.25, .rate = 1e-3, .items = 100}; }

auto count(const std::string& text, char c) { return std::count(text.begin(), text.end(), c); }

}  // namespace

TEST_CASE("in a pipe every tenth part of the steps is a line, and no line redraws") {
  std::ostringstream out;
  double now = 0;
  Progress progress(out, pipe_, 200, 0, [&] { return now; });
  for (i64 step = 1; step <= 200; ++step) {
    now = static_cast<double>(step) * 0.5;
    progress.update(report_of(step));
  }
  CHECK(count(out.str(), '\n') == 10);
  CHECK(count(out.str(), '\r') == 0);
  CHECK(out.str().starts_with(
      "step  20/200  loss 0.5000  accuracy  25.0 %  rate 1.0e-03  200 tokens/s  1 min 30 s left\n"));
  CHECK(out.str().ends_with(
      "step 200/200  loss 0.5000  accuracy  25.0 %  rate 1.0e-03  200 tokens/s  took 1 min 40 s\n"));
}

TEST_CASE("the time that is left is that of the plan, however many steps there are, and ends with the limit") {
  for (const double limit : {0.0, 15.0, 100.0}) {
    CAPTURE(limit);
    std::ostringstream out;
    double now = 0;
    Progress progress(out, pipe_, 10, 0, [&] { return now; });
    progress.set_limit(limit);
    progress.set_plan(20);
    now = 1;
    progress.update(report_of(1));
    progress.set_total(1000);
    now = 5;
    progress.update(report_of(100));
    const bool limited = limit == 15;
    CHECK(out.str().find(limited ? "  14 s left\n" : "  19 s left\n") != std::string::npos);
    CHECK(out.str().ends_with(limited ? "  10 s left\n" : "  15 s left\n"));
  }
}

TEST_CASE("in a pipe every tenth part of a limit is a line, however few of the steps are made") {
  std::ostringstream out;
  double now = 0;
  Progress progress(out, pipe_, 100'000, 0, [&] { return now; });
  progress.set_limit(20);
  for (i64 step = 1; step <= 200; ++step) {
    now = static_cast<double>(step) * 0.1;
    progress.update(report_of(step));
  }
  CHECK(count(out.str(), '\n') == 10);
  CHECK(out.str().ends_with("  0 s left\n"));
}

TEST_CASE("on a terminal the line is drawn at most ten times a second, and the last step stays") {
  std::ostringstream out;
  double now = 0;
  Progress progress(out, live, 1000, 0, [&] { return now; });
  for (i64 step = 1; step <= 999; ++step) {
    now = static_cast<double>(step) * 0.001;
    progress.update(report_of(step));
  }
  CHECK(count(out.str(), '\r') >= 8);
  CHECK(count(out.str(), '\r') <= 10);
  CHECK(count(out.str(), '\n') == 0);
  progress.update(report_of(1000));
  CHECK(count(out.str(), '\n') == 1);
}

TEST_CASE("the time that is left fits every terminal of 80 columns, and other parts go before it does") {
  const auto shown = [](int width, i64 total, double seconds, std::optional<double> validation = {}) {
    std::ostringstream out;
    double now = 0;
    Progress progress(out, {.live = true, .colours = true, .width = width}, total, 0, [&] { return now; });
    now = seconds;
    progress.update(
        {.step = total / 2, .loss = 0.5, .accuracy = 0.25, .rate = 1e-3, .items = 1000000, .validation = validation});
    return out.str().substr(out.str().rfind('\r') + 1);
  };
  CHECK(shown(120, 3000, 10) ==
        "step 1500/3000  loss 0.5000  accuracy  25.0 %  rate 1.0e-03  100000 tokens/s  10 s left");
  CHECK(shown(80, 3000, 10) == "step 1500/3000  loss 0.5000  accuracy  25.0 %  100000 tokens/s  10 s left");
  CHECK(shown(80, 1000000, 5000) == "step  500000/1000000  loss 0.5000  accuracy  25.0 %  1 h 23 min left");
  CHECK(shown(60, 3000, 10) == "step 1500/3000  loss 0.5000  accuracy  25.0 %  10 s left");
  CHECK(shown(50, 3000, 10) == "step 1500/3000  loss 0.5000  10 s left");
  CHECK(shown(120, 3000, 10, 0.25) ==
        "step 1500/3000  loss 0.5000  validation 0.2500  accuracy  25.0 %  rate 1.0e-03  100000 tokens/s  10 s left");
  CHECK(shown(80, 3000, 10, 0.25) == "step 1500/3000  loss 0.5000  validation 0.2500  accuracy  25.0 %  10 s left");
  CHECK(shown(80, 1000000, 5000, 12.5) == "step  500000/1000000  loss 0.5000  validation 12.5000  1 h 23 min left");
  CHECK(shown(50, 3000, 10, 0.25) == "step 1500/3000  loss 0.5000  10 s left");
}

TEST_CASE("a live line is cut to the terminal's width and is taken away at the end") {
  std::ostringstream out;
  {
    LiveLine line(out, {.live = true, .colours = false, .width = 11}, [] { return 0.0; });
    line.show("abcdefghijklmnop");
  }
  CHECK(out.str() == "\rabcdefghij\r          \r");
}

TEST_CASE("a live line is redrawn without escape sequences: blanks cover what was longer") {
  std::ostringstream out;
  double now = 0;
  LiveLine line(out, {.live = true}, [&] { return now++; });
  line.show("abcdef");
  line.show("gh");
  line.show("i");
  CHECK(out.str() == "\rabcdef\rgh    \ri ");
  CHECK(out.str().find('\033') == std::string::npos);
}

TEST_CASE("a duration is printed in seconds, minutes or hours, rounded first") {
  CHECK(duration(0.4) == "0 s");
  CHECK(duration(59.4) == "59 s");
  CHECK(duration(59.6) == "1 min 00 s");
  CHECK(duration(3599.6) == "1 h 00 min");
  CHECK(duration(7500) == "2 h 05 min");
}

TEST_CASE("a step without accuracy or validation loss says nothing of them, and a note is a line of its own") {
  std::ostringstream out;
  Progress progress(out, live, 10, 0, [] { return 0.0; });
  progress.update({.step = 1, .loss = 0.5, .rate = 1e-3, .items = 100});
  progress.note("step 1: found something");
  CHECK(out.str().find("accuracy") == std::string::npos);
  CHECK(out.str().find("validation") == std::string::npos);
  CHECK(out.str().find("loss 0.5000  rate 1.0e-03") != std::string::npos);
  CHECK(out.str().ends_with(" \rstep 1: found something\n"));
}

TEST_CASE("the median is the middle value, or the mean of the two in the middle") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({4, 1, 100, 2}) == 3);
  CHECK_THROWS_WITH_AS(median({}), "median: needs at least one value", Error);
}

TEST_CASE("work is run at least six times, and prepared before each run") {
  int runs = 0, prepared = 0;
  bool always_prepared = true;
  const double seconds = fastest_seconds(
      0, [&] { always_prepared = always_prepared && prepared == ++runs; }, [&] { ++prepared; });
  CHECK(runs == 6);
  CHECK(always_prepared);
  CHECK(seconds >= 0);
}
