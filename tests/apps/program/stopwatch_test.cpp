// Chapter 9. Tests of the stopwatch: the median, and how often work is run.
#include "apps/program/stopwatch.h"

#include <doctest/doctest.h>

using namespace orrery;

TEST_CASE("the median is the middle value, or the mean of the two in the middle") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 2}) == 2);
  CHECK(median({4, 1, 100, 2}) == 3);
  CHECK_THROWS_WITH_AS(median({}), "median: needs at least one value", Error);
}

TEST_CASE("a stopwatch runs forward") {
  const Stopwatch watch;
  const double first = watch.seconds();
  CHECK(first >= 0);
  CHECK(watch.seconds() >= first);
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

TEST_CASE("work is run until the budget is used up") {
  int runs = 0;
  const Stopwatch watch;
  fastest_seconds(0.002, [&] { ++runs; });
  CHECK(watch.seconds() >= 0.002);
  CHECK(runs > 6);
}
