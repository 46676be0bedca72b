// Chapter 9. What the benchmarks share: their options, and how results are stored.
//
//   step      how long a training step takes
//   profile   where its time goes
//   toy       how long whole trainings take
// All others are tables of small pieces (micro.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/program/exit_code.h"
#include "core/dtype.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

struct BenchConfig;

struct BenchOptions {
  std::string config{};  ///< name of a row in apps/measure/bench/configs.h
  i64 threads = 1, tiles = 1, steps = 20, seed = 1;
  i64 batch = 0, length = 0, width = 0;  ///< replace the configuration's own; 0 keeps them
  i64 context = 256;                     ///< of `decode`: positions of each stream before the clock starts
  double dropout = -1;                   ///< below 0 means the configuration's own
  std::vector<std::string> names{};      ///< of entries of a table, or patterns; none: all
  bool list = false;                     ///< only name the entries
  std::string json{};                    ///< file for the results, "" for none
};

/// Steps before the clock starts: the first ones also allocate memory and start threads.
inline constexpr int warm_up_steps = 3;

/// Run a bench, print its result to stdout, and return the exit code.
int bench_step(const BenchOptions& options);
int bench_profile(const BenchOptions& options);
int bench_toy(const BenchOptions& options);

/// Adds the options of benches of training steps: model, batch and number of steps.
void add_step_options(CLI::App& command, BenchOptions& options);

/// Prints what every benchmark prints before it measures, after its options were checked: the first lines of every run,
/// and a warning if other programs keep the cores busy.
void announce(const BenchOptions& options, i64 parameters = 0);

/// Name and sizes of a configuration, for the file of --json.
nlohmann::ordered_json as_json(const BenchConfig& config);

/// Writes `results` to the file of --json, if one was given, together with what they depend on: the benchmark, threads,
/// tiles, seed, CPU and BLAS kernel.
void write_results(const BenchOptions& options, const std::string& bench, const nlohmann::ordered_json& results);

}  // namespace orrery
