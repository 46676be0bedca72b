// Chapter 9. Measuring steps: three steps to warm up, then the clock starts.
#include "apps/measure/bench/bench.h"

#include <sys/resource.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/training.h"
#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/stopwatch.h"

namespace orrery {
namespace {

i64 peak_resident_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;  // Linux counts in KiB
}

}  // namespace

StepFigures measure_steps(const BenchConfig& config, const BenchOptions& options) {
  BenchTraining training(config, config.dropout_or_own(options.dropout), options.seed);
  StepFigures figures{.config = config.name, .parameters = training.parameter_count()};
  for (int i = 0; i < warm_up_steps; ++i) training.step();
  std::vector<double> seconds;
  for (i64 i = 0; i < options.steps; ++i) seconds.push_back(seconds_of([&] { figures.loss = training.step(); }));
  figures.median = median(seconds);
  figures.fastest = *std::min_element(seconds.begin(), seconds.end());
  figures.tokens_per_second = static_cast<double>(config.tokens_per_step()) / figures.median;
  figures.peak_megabytes = peak_resident_megabytes();
  return figures;
}

std::string step_line(const StepFigures& f) {
  return f.config + numbers(" step_ms=%.2f min_ms=%.2f tok/s=%.0f params=%.2fM peak_mb=%ld loss=%.4f", 1e3 * f.median,
                            1e3 * f.fastest, f.tokens_per_second, 1e-6 * static_cast<double>(f.parameters),
                            f.peak_megabytes, f.loss);
}

int bench_step(const BenchOptions& options) {
  const BenchConfig config = scaled(bench_config(options.config), options.batch, options.length, options.width);
  announce(options);
  const StepFigures figures = measure_steps(config, options);
  std::cout << step_line(figures) << std::endl;
  write_results(options, "step",
                {{"config", as_json(config)},
                 {"steps", options.steps},
                 {"dropout", config.dropout_or_own(options.dropout)},
                 {"median_ms", 1e3 * figures.median},
                 {"min_ms", 1e3 * figures.fastest},
                 {"tokens_per_second", figures.tokens_per_second},
                 {"parameters", figures.parameters},
                 {"peak_mb", figures.peak_megabytes},
                 {"loss", figures.loss}});
  return done;
}

}  // namespace orrery
