// Chapter 9. Tests of `orrery bench toy`: a line for each task, and what the training learns in a few steps.
#include "apps/measure/bench/toy.h"

#include "tests/apps/run_program.h"

using namespace orrery;
using namespace orrery::program;

TEST_CASE("a whole training is one line of key=value") {
  CHECK(toy_line({.task = "sort",
                  .steps = 2000,
                  .right = 999,
                  .exam_size = 1000,
                  .training_seconds = 10.5,
                  .exam_seconds = 0.25}) == "sort steps=2000 train_s=10.50 step_ms=5.25 exam_s=0.25 exact=999/1000");
}

TEST_CASE("bench toy trains and examines each task") {
  const Result result = run("bench toy --steps 2 --threads 1");
  CHECK(result.exit_code == 0);
  for (const std::string task : {"reverse", "copy", "sort"})
    CHECK(result.text.find(task + " steps=2 train_s=") != result.text.npos);
  CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 3);
  CHECK(result.text.find("/1000\n") != result.text.npos);
}
