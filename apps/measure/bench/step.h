// Chapter 9. `orrery bench step`: how long one training step takes.
#pragma once

#include <string>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/configs.h"

namespace orrery {

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

}  // namespace orrery
