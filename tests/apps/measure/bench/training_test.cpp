// Chapter 9. Tests of the training step that is measured: it learns, and its bits do not depend on the threads.
#include "apps/measure/bench/training.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/machine/parallel.h"
#include "tests/core/support.h"

using namespace orrery;

namespace {

std::vector<double> losses(double dropout, i64 seed, int steps, const char* config = "toy") {
  BenchTraining training(bench_config(config), dropout, seed);
  std::vector<double> result;
  for (int i = 0; i < steps; ++i) result.push_back(training.step());
  return result;
}

}  // namespace

TEST_CASE("the loss starts near that of a guess and falls") {
  const std::vector<double> loss = losses(0.0, 1, 8);
  CHECK(loss.front() > std::log(13.0));  // 13 words, all as likely
  CHECK(loss.front() < 4);
  CHECK(loss.back() < loss.front());
}

TEST_CASE("a GPT's loss starts at that of a guess and falls") {
  const std::vector<double> loss = losses(0.0, 1, 4, "nanogpt");
  CHECK(loss.front() == doctest::Approx(std::log(65.0)).epsilon(0.05));
  CHECK(loss.back() < loss.front());
}

TEST_CASE("sequences of one or two tokens keep a word each, and their neighbours") {
  for (const i64 length : {1, 2}) {
    BenchConfig config = bench_config("toy");
    config.source_length = config.target_length = length;
    BenchTraining training(config, 0.0, 1);
    const double loss = training.step();
    CHECK(loss > std::log(13.0));
    CHECK(loss < 4);
  }
}

TEST_CASE("seed and dropout count, threads do not") {
  const auto with_threads = [](int count) {
    const small::Threads wanted(count);
    return losses(0.1, 1, 3);
  };
  const std::vector<double> one = with_threads(1);
  CHECK(with_threads(2) == one);
  CHECK(losses(0.1, 2, 3) != one);
  CHECK(losses(0.2, 1, 3) != one);
}
