// Chapter 9. Tests of `orrery bench step`, `bench toy` and `bench promises`: their lines, their files, their mistakes.
#include "apps/measure/bench/bench.h"

#include <doctest/doctest.h>
#include <bit>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/micro.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

TEST_CASE("a measurement is one line of key=value") {
  CHECK(step_line({.config = "base",
                   .median = 0.74125,
                   .fastest = 0.7391,
                   .tokens_per_second = 2762.93,
                   .parameters = 56436544,
                   .peak_megabytes = 1327,
                   .loss = 9.25}) ==
        "base step_ms=741.25 min_ms=739.10 tok/s=2763 params=56.44M peak_mb=1327 loss=9.2500");
}

TEST_CASE("bench step prints its line and nothing else on stdout, and keeps it in a file") {
  const TemporaryFolder folder;
  const std::string path = folder / "step.json";
  const Result result = run("bench step --config toy --steps 2 --threads 1 --json " + path);
  CHECK(result.exit_code == 0);
  double median = 0, fastest = 0, rate = 0, parameters = 0, loss = 0;
  long peak = 0;
  int length = 0;
  CHECK(std::sscanf(result.text.c_str(), "toy step_ms=%lf min_ms=%lf tok/s=%lf params=%lfM peak_mb=%ld loss=%lf\n%n",
                    &median, &fastest, &rate, &parameters, &peak, &loss, &length) == 6);
  CHECK(static_cast<size_t>(length) == result.text.size());
  CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 1);
  CHECK(parameters == 0.17);
  CHECK(fastest <= median);
  CHECK(rate * median / 1000 == doctest::Approx(64 * 24).epsilon(0.02));  // both are rounded
  CHECK(peak > 0);
  CHECK(loss > 1);

  std::ifstream file(path);
  const nlohmann::json kept = nlohmann::json::parse(file);
  CHECK(kept["bench"] == "step");
  CHECK(kept["threads"] == 1);
  CHECK(kept["products"] == "own");
  CHECK(kept["precision"] == "f32");
  CHECK(kept["seed"] == 1);
  CHECK_FALSE(kept["cpu"].get<std::string>().empty());
  CHECK(kept["results"]["config"]["name"] == "toy");
  CHECK(kept["results"]["config"]["batch"] == 64);
  CHECK(kept["results"]["parameters"] == 170768);
  CHECK(kept["results"]["median_ms"].get<double>() == doctest::Approx(median).epsilon(0.01));
}

TEST_CASE("what was changed of a configuration stands in its line") {
  const Result result = run("bench step --config toy --steps 1 --batch 3 --length 1 --width 32");
  CHECK(result.exit_code == 0);
  CHECK(result.text.starts_with("toy[B=3,T=1,d_model=32] step_ms="));
}

TEST_CASE("a bench warns where other programs keep the cores busy") {
  const std::string busy =
      "for i in $(seq $((2 * $(nproc)))); do timeout 60 sh -c 'while :; do :; done' >/dev/null 2>&1 & "
      "others=\"$others $!\"; done; ";
  const Result result =
      shell(busy + "timeout 50 " + quoted_program + "bench step --steps 1 --threads 1 2>&1 >/dev/null; kill $others");
  CHECK(contains(result.text, ": measured times will be too long"));
}

TEST_CASE("bench refuses what it does not know, and names what there is") {
  check_usage_error("bench", "bench", "step, profile, promises, gemm, ops, fused, attention, masks, busy, decode, toy");
  check_usage_error("bench nonsense", "'nonsense'",
                    "step, profile, promises, gemm, ops, fused, attention, masks, busy, decode, toy");
  check_usage_error("bench step --nonsense", "'--nonsense'", "orrery bench step --help");
  check_usage_error("bench step --config gigantic", "'gigantic'", "toy, annotated, tiny-mt, base");
  check_usage_error("bench gemm --config gigantic", "'gigantic'", "all, toy, annotated, tiny-mt, base");
  check_usage_error("bench profile --steps 0", "--steps: '0'", "from 1 to");
  check_usage_error("bench step --dropout 1", "--dropout: '1'", "from 0 to 0.99");
}

TEST_CASE("each bench refuses a file that it could not write, before it measures") {
  const TemporaryFolder folder;
  for (const std::string name : {"step", "profile", "gemm", "toy"}) {
    CAPTURE(name);
    const std::string path = folder / "missing/a.json";
    CHECK(run("bench " + name + " --json " + path, "2>&1").text == "orrery: bench: cannot write --json " + path +
                                                                       ": the folder " + folder / "missing" +
                                                                       ": No such file or directory\n");
    CHECK(run("bench " + name + " --json /dev/null", "2>&1").text ==
          "orrery: bench: --json /dev/null is not a regular file\n");
    CHECK(run("bench " + name + " --json " + folder / "").exit_code == 1);
  }
}

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

TEST_CASE("denormal weights are denormal, of both signs, and different") {
  Rng rng(1);
  Tensor weight = Tensor::empty({100});
  make_denormal(weight, rng);
  i64 negative = 0;
  for (i64 i = 0; i < weight.count(); ++i) {
    // By its bits: to comparisons, which take denormal numbers as zero, it is 0.
    const u32 bits = std::bit_cast<u32>(weight.data<float>()[i]), magnitude = bits & 0x7FFFFFFF;
    CHECK(magnitude > 0);
    CHECK(magnitude < 0x00800000);  // the smallest normal number
    negative += bits != magnitude;
  }
  CHECK(negative > 20);
  CHECK(negative < 80);
  CHECK(std::bit_cast<u32>(weight.data<float>()[0]) != std::bit_cast<u32>(weight.data<float>()[1]));
}

TEST_CASE("the time that ranks take to join gradients is fitted to what two of them took") {
  const JoiningTime exact{.latency = 1e-3, .bandwidth = 1e8};
  std::vector<std::pair<i64, double>> measured;
  CHECK_THROWS_AS(fitted_to_two(measured), Error);
  for (const i64 parameters : {100, 10'000, 1'000'000}) measured.emplace_back(parameters, exact.of(parameters, 2));
  const JoiningTime found = fitted_to_two(measured);
  CHECK(found.of(0, 2) == doctest::Approx(0.001));
  CHECK(found.of(1'000'000, 2) == doctest::Approx(0.001 + 0.04));
  CHECK(found.of(1'000'000, 4) == doctest::Approx(0.001 + 0.06));
  CHECK_THROWS_AS(fitted_to_two({{100, 2.0}, {10'000, 1.0}}), Error);
}
