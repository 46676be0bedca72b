// Chapter 9. What the benches share: their options, and how results are kept.
//
//   step     how long a training step takes                gemm   how fast each of its matrix products is
//   profile  where its time goes                           ops    how fast everything else is
//   decode   how fast a model writes                       attention   how time and memory grow with the length
//   promises what three promises cost a training step
//   fused    what each fused operation saves
// Serves: core/machine/parallel.h
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/dtype.h"

namespace orrery {

struct BenchConfig;

struct BenchOptions {
  std::string config{};  ///< name of a row in bench_configs.h
  i64 threads = 1, tiles = 1, steps = 20, seed = 1;
  i64 batch = 0, length = 0, width = 0;  ///< in place of the configuration's own; 0 keeps them
  i64 context = 256;                     ///< of `decode`: positions each stream has read before the clock runs
  double dropout = -1;                   ///< below 0: the configuration's own
  std::string json{};                    ///< file to keep the results in, "" for none
};

/// Steps made before the clock runs: the first ones pay for memory and threads.
inline constexpr int warm_up_steps = 3;

/// Run a bench, print its result to stdout, and return the exit code.
int bench_step(const BenchOptions& options);
int bench_profile(const BenchOptions& options);
int bench_gemm(const BenchOptions& options);
int bench_ops(const BenchOptions& options);
int bench_fused(const BenchOptions& options);
int bench_attention(const BenchOptions& options);
int bench_decode(const BenchOptions& options);
int bench_promises(const BenchOptions& options);

/// Name and sizes of a configuration, for the file of --json.
nlohmann::ordered_json as_json(const BenchConfig& config);

/// Writes `results` to the file of --json, if one was given, with what they depend on: the bench, threads, tiles, seed,
/// CPU, BLAS kernel.
void keep(const BenchOptions& options, const std::string& bench, const nlohmann::ordered_json& results);

}  // namespace orrery
