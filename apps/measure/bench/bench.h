// Chapter 9. What the benchmarks share: their options, and how results are stored.
//
//   step      how long a training step takes
//   profile   where its time goes
//   gemm      how fast each of its matrix products is
//   ops       how fast everything else is
//   fused     what each fused operation saves
//   attention how time and memory grow with the length
//   masks     what masks cost attention
//   decode    how fast a model writes
//   promises  what three promises cost a training step
//   busy      how long a step takes beside other programs
//   toy       how long whole trainings take
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/program/exit_code.h"
#include "core/dtype.h"

namespace orrery {

struct BenchConfig;

struct BenchOptions {
  std::string config{};  ///< name of a row in apps/measure/bench/configs.h
  i64 threads = 1, tiles = 1, steps = 20, seed = 1;
  i64 batch = 0, length = 0, width = 0;  ///< replace the configuration's own; 0 keeps them
  i64 context = 256;                     ///< of `decode`: positions of each stream before the clock starts
  double dropout = -1;                   ///< below 0 means the configuration's own
  std::string json{};                    ///< file for the results, "" for none
};

/// Steps before the clock starts: the first ones also allocate memory and start threads.
inline constexpr int warm_up_steps = 3;

/// Run a bench, print its result to stdout, and return the exit code: `failed` if the result says MISSED.
int bench_step(const BenchOptions& options);
int bench_profile(const BenchOptions& options);
int bench_gemm(const BenchOptions& options);
int bench_ops(const BenchOptions& options);
int bench_fused(const BenchOptions& options);
int bench_attention(const BenchOptions& options);
int bench_masks(const BenchOptions& options);
int bench_decode(const BenchOptions& options);
int bench_promises(const BenchOptions& options);
int bench_toy(const BenchOptions& options);
int bench_busy(const BenchOptions& options);

/// Prints what every benchmark prints before it measures, after its options were checked: the first lines of every run,
/// and a warning if other programs keep the cores busy.
void announce(const BenchOptions& options, i64 parameters = 0);

/// The exit code of a bench that prints these rows: `failed` if one of them is MISSED.
template <class Row>
int exit_code_of(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.kept(); }) ? done : failed;
}

/// Name and sizes of a configuration, for the file of --json.
nlohmann::ordered_json as_json(const BenchConfig& config);

/// Writes `results` to the file of --json, if one was given, together with what they depend on: the benchmark, threads,
/// tiles, seed, CPU and BLAS kernel.
void write_results(const BenchOptions& options, const std::string& bench, const nlohmann::ordered_json& results);

}  // namespace orrery
