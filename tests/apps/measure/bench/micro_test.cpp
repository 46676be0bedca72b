// Chapter 9. Tests of the tables of small pieces: every entry runs, and what a table prints, keeps and refuses.
#include "apps/measure/bench/micro.h"

#include <doctest/doctest.h>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/tensor_ops.h"
#include "nn/models/gpt.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

namespace {

const Entry& entry_called(const std::vector<Entry>& entries, const std::string& name) {
  for (const Entry& entry : entries)
    if (entry.name == name) return entry;
  FAIL("no entry is called " << name);
  throw 0;
}

bool can_measure() {
  static const bool can = !contains(errors("bench ops 'copy, 256 KB'").text, "apt-get install libbenchmark-dev");
  return can;
}

// Measures for no longer than it must.
Result quick_bench(const std::string& arguments) {
  return shell("BENCHMARK_MIN_TIME=0.001 " + quoted_program + "bench " + arguments + " 2>/dev/null");
}

// The numbers that `orrery bench ARGUMENTS --json FILE` keeps of its entries.
nlohmann::json kept_rows(const std::string& arguments) {
  CAPTURE(arguments);
  const TemporaryFolder folder;
  const std::string path = folder / "results.json";
  const Result result = quick_bench(arguments + " --json " + path);
  CHECK(result.exit_code == (contains(result.text, "MISSED") ? 1 : 0));
  std::ifstream file(path);
  return nlohmann::json::parse(file)["results"]["benchmarks"];
}

}  // namespace

TEST_CASE("every loop of bench ops can be prepared and run more than once") {
  std::set<std::string> names;
  for (const Entry& entry : ops_bench().entries({})) {
    CHECK(names.insert(entry.name).second);
    if (!entry.name.ends_with("256 KB")) continue;
    CAPTURE(entry.name);
    const Trial trial = entry.trial();
    CHECK(trial.own.amount > 0);
    for (int i = 0; i < 3; ++i) {
      CHECK_NOTHROW(trial.own.prepare());
      CHECK_NOTHROW(trial.own.run());
      CHECK_NOTHROW(trial.rival->run());
    }
  }
}

TEST_CASE("every bench lists its entries, each of another name, and measures none") {
  for (const std::string bench :
       {"gemm", "ops", "fused", "attention", "masks", "decode --config nanogpt --context 9", "promises", "busy"}) {
    CAPTURE(bench);
    const Result result = run("bench " + bench + " --list", "2>&1");
    CHECK(result.exit_code == 0);
    std::set<std::string> names;
    std::istringstream lines(result.text);
    for (std::string name; std::getline(lines, name);) CHECK(names.insert(name).second);
    CHECK(names.size() >= 2);
  }
  CHECK(run("bench masks --list 'T = 256, w*'").text == "T = 256, window(32)\nT = 256, window(32) | global(1)\n");
  check_usage_error("bench ops nonsense", "nothing matches", "orrery bench ops --list");
}

TEST_CASE("a table has rates and ratios beside the rival's, sums up each kind, and is kept in a file") {
  if (!can_measure()) return;
  const Result table = quick_bench("gemm --config toy 'toy: head*' '*scores*' --threads 1");
  CHECK(contains(line(table.text, 0), "ms a step     GF/s  OpenBLAS    times     best"));
  CHECK(contains(table.text, "toy: head, y NT 768x16x64 "));
  CHECK(contains(table.text, "linear maps: times "));
  CHECK(contains(table.text, "heads of attention: times "));
  CHECK(contains(table.text, "least "));
  const nlohmann::json rows = kept_rows("ops 'gelu*256 KB' --threads 1");
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows)
    for (const std::string column : {"us", "GB/s", "triad", "of triad"}) CHECK(row[column] > 0);
}

TEST_CASE("fused operations are measured beside their composed forms, with what they keep") {
  if (!can_measure()) return;
  const nlohmann::json rows = kept_rows("fused --config toy 'gelu_feed_forward*' --threads 1");
  CHECK(rows[0]["composed"] > 0);
  CHECK(rows[0]["share"] > 0);
  if (small::counts_memory()) CHECK(rows[0]["MB"] < rows[0]["MB composed"]);
}

TEST_CASE("slow: busy, promises, masks and decode measure all that they name") {
  if (!can_measure()) return;
  CHECK(kept_rows("busy --steps 1 --threads 2").size() == 3);
  CHECK(kept_rows("promises --steps 2 --threads 1").size() == 5);
  CHECK(kept_rows("masks 'T = 256, *' --threads 1").size() == 5);
  const nlohmann::json rows = kept_rows("decode --config nanogpt --steps 5 --context 9 --batch 3 --threads 1");
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) CHECK(row["of limit"].get<double>() > 0);
  const nn::GptConfig config = nn::gpt_preset("nanogpt");
  const double weights = static_cast<double>(config.parameter_count() - 64 * 128), cache = 4 * 2 * 128 * (9 + 3 + 3);
  CHECK(rows[0]["MB a token"].get<double>() == doctest::Approx(4e-6 * (weights + cache)));
  CHECK(rows[1]["MB a token"].get<double>() == doctest::Approx(4e-6 * (weights / 3 + cache)));
  check_usage_error("bench decode --config gpt3", "'gpt3'", "nanogpt, gpt2, gpt2-medium, gpt2-large");
  check_usage_error("bench decode --config nanogpt --context 60", "--context", "more than the 64 positions of nanogpt");
}

TEST_CASE("an entry whose ratio is above its bound is MISSED, and the bench fails") {
  if (!can_measure()) return;
  static double most = 0;
  MicroBench bench{
      .name = "none", .what = "", .help = "", .entries = [](const BenchOptions&) {
        const Work nothing{.run = [] {
          for (volatile int i = 0; i < 100;) i = i + 1;
        }};
        return std::vector<Entry>{
            {.name = "one", .trial = [=] { return Trial{.own = nothing, .rival = nothing}; }, .most = most}};
      }};
  bench.time = "us";
  bench.rival = "other";
  bench.ratio = "share";
  bench.seconds = 0.001;
  std::ostringstream out;
  std::streambuf* const before = std::cout.rdbuf(out.rdbuf());
  most = 1e-12;
  CHECK(run_micro(bench, {}) == failed);
  CHECK(contains(out.str(), "  MISSED: at most 1e-12\n"));
  most = 1e12;
  CHECK(run_micro(bench, {}) == done);
  std::cout.rdbuf(before);
}

TEST_CASE("the memory of a training step grows with the length, not with its square") {
  if (!small::counts_memory()) return;
  const std::vector<Entry> entries = attention_bench().entries({});
  const double half = entry_called(entries, "training step, T = 1024").trial().besides.at("peak MB"),
               whole = entry_called(entries, "training step, T = 2048").trial().besides.at("peak MB");
  CHECK(whole >= half);
  CHECK(whole <= 2.2 * half);
}

TEST_CASE("long: the training step of 16,384 positions takes at most 1 GB, and 2.2 times that of half as many") {
  if (!small::counts_memory()) return;
  const std::vector<Entry> entries = attention_bench().entries({});
  const double half = entry_called(entries, "training step, T = 8192").trial().besides.at("peak MB"),
               whole = entry_called(entries, "training step, T = 16384").trial().besides.at("peak MB");
  MESSAGE("peak MB: " << half << ", " << whole);
  CHECK(whole <= 1024);
  CHECK(whole <= 2.2 * half);
}

TEST_CASE("both forms of every pair give the same values and gradients") {
  for (const FusedPair& pair : fused_pairs(scaled(bench_config("toy"), 3, 5, 0))) {
    CAPTURE(pair.name);
    for (Variable leaf : pair.leaves) leaf.clear_gradient();  // pairs share leaves
    const Variable composed = pair.composed();
    backward(composed, full(composed.shape(), 1.0));
    std::vector<Tensor> gradients;
    for (Variable leaf : pair.leaves) {
      gradients.push_back(leaf.gradient());
      leaf.clear_gradient();
    }
    const Variable fused = pair.fused();
    backward(fused, full(fused.shape(), 1.0));
    const auto check_close = [](const Tensor& a, const Tensor& b) {
      REQUIRE(a.shape() == b.shape());
      const double size = std::sqrt(sum_of_squares(b)), distance = std::sqrt(sum_of_squares(a - b));
      CHECK(size > 0);
      CHECK(distance <= 1e-5 * size);
    };
    check_close(fused.value(), composed.value());
    for (size_t i = 0; i < pair.leaves.size(); ++i) check_close(pair.leaves[i].gradient(), gradients[i]);
  }
}
