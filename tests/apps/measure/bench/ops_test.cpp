// Chapter 9. Tests of `orrery bench ops`: every loop runs, again and again, and the table is readable.
#include "apps/measure/bench/ops.h"

#include <doctest/doctest.h>

#include <set>
#include <sstream>

using namespace orrery;

TEST_CASE("every loop can be prepared and run more than once") {
  const std::vector<Loop> loops = bench_loops(32, 64);
  std::set<std::string> names;
  for (const Loop& loop : loops) {
    CAPTURE(loop.name);
    names.insert(loop.name);
    CHECK(loop.bytes >= 32 * 64 * 4);
    for (int i = 0; i < 3; ++i) {
      CHECK_NOTHROW(loop.prepare());
      CHECK_NOTHROW(loop.run());
    }
  }
  CHECK(names.size() == loops.size());
  CHECK(loops[0].name.starts_with("triad"));
  for (const std::string name : {"add", "relu", "gelu", "softmax", "layer norm", "layer norm, backward", "dropout",
                                 "cross entropy, 10,000 classes", "clipping and Adam", "column sums", "sum of squares",
                                 "embedding, backward", "residual and dropout", "zero padding", "copy"})
    CHECK(names.contains(name));
}

TEST_CASE("a loop's speed is its bytes over its time") {
  CHECK(measured_speed({.name = "nothing", .bytes = 1, .run = [] {}}) > 0);
}

TEST_CASE("the best triad counts, and one that is much slower is said") {
  std::ostringstream quiet, busy;
  CHECK(best_of_triads({4e10, 5e10, 4.5e10}, quiet) == 5e10);
  CHECK(quiet.str().empty());
  CHECK(best_of_triads({4e10, 5e10, 1e10}, busy) == 5e10);
  CHECK(busy.str().starts_with("warning: the triad ran at 10 to 50 GB/s"));
}

TEST_CASE("loops print beside the triad, at most 100 columns wide") {
  std::ostringstream out;
  print_loops(out, {{"triad", 2e11, 4e10}, {"a loop with a name that is too long for its column", 1e11, 3e10}});
  std::istringstream lines(out.str());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    CAPTURE(line);
    CHECK(line.size() <= 100);
  }
  CHECK(count == 4);
  CHECK(out.str().find("     100.0     50 %           30.0     75 %\n") != std::string::npos);
}
