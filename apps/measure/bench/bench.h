// Chapter 9. What the benchmarks share: their options, and how results are stored.
//
//   step      how long a training step takes
//   profile   where its time goes
//   toy       how long whole trainings take
//   ranks     how long ranks take to join gradients
// All others are tables of small pieces (micro.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/program/command.h"
#include "apps/program/options.h"
#include "core/dtype.h"

namespace CLI {
class App;
}  // namespace CLI

namespace orrery {

struct BenchConfig;

struct BenchOptions {
  std::string config{};  ///< name of a row in apps/measure/bench/training.cpp
  i64 threads = 1, steps = 20, seed = 1;
  ProductOptions products{};
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
int bench_ranks(const BenchOptions& options);

/// The results; times in seconds.
struct StepFigures {
  std::string config;
  double median = 0, fastest = 0;  ///< of a step
  double tokens_per_second = 0;    ///< at the median
  i64 parameters = 0;
  i64 peak_megabytes = 0;  ///< the process's largest resident set
  double loss = 0;         ///< of the last step
};

/// Makes a few steps that do not count, then measures `options.steps` more. Errors: those of BenchTraining.
StepFigures measure_steps(const BenchConfig& config, const BenchOptions& options);

/// "toy step_ms=3.21 min_ms=3.10 tok/s=478505 params=0.23M peak_mb=21 loss=2.5112"
std::string step_line(const StepFigures& figures);

/// A whole training, and its exam: `right` of `exam_size` unseen sequences were answered without a mistake.
struct ToyFigures {
  std::string task;
  i64 steps = 0, right = 0, exam_size = 0;
  double training_seconds = 0, exam_seconds = 0;
};

/// Trains `task` for `steps` steps, otherwise with the defaults of `orrery toy`.
ToyFigures measure_toy(const std::string& task, i64 steps, i64 seed);

/// "reverse steps=3000 train_s=15.62 step_ms=5.21 exam_s=0.11 exact=1000/1000"
std::string toy_line(const ToyFigures& figures);

/// What ranks take to join gradients: latency + 8 P (R - 1) / R / bandwidth, in seconds, with bytes a second.
struct JoiningTime {
  double latency = 0, bandwidth = 0;
  double of(i64 parameters, i64 ranks) const;
};

/// That which fits best to the seconds that two ranks took for so many parameters: the sum of the squares of relative
/// errors is smallest.
JoiningTime fitted_to_two(const std::vector<std::pair<i64, double>>& measured);

/// Adds the options of benches of training steps: model, batch and number of steps.
void add_step_options(CLI::App& command, BenchOptions& options);

/// Prints what every benchmark prints before it measures, after its options were checked: the first lines of every run,
/// and a warning if other programs keep the cores busy.
void announce(const BenchOptions& options, i64 parameters = 0);

/// Name and sizes of a configuration, for the file of --json.
nlohmann::ordered_json as_json(const BenchConfig& config);

/// Writes `results` to the file of --json, if one was given, together with what they depend on: the benchmark, threads,
/// products, seed, CPU and BLAS kernel.
void write_results(const BenchOptions& options, const std::string& bench, const nlohmann::ordered_json& results);

}  // namespace orrery
