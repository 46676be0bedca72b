// Chapter 9. `orrery bench promises`: what three promises of tests/promises/README.md cost a training step.
//
//   11  using a saved tensor that was changed is an error: each write counts a version, each save notes it, each use
//       compares it
//   12  the first NaN is named: the loss and the norm of the gradients are checked before each step
//   15  denormal numbers cost nothing: every thread treats them as zero
// Method for 12 and 15: plain steps and steps that differ only in the promise take turns, in changing order. Each turn
// gives a ratio; the cost is the median of all ratios, minus 1. So neither a machine that slows down nor a single slow
// step affects it. A negative cost shows how precise the measurement is.
// Method for 11: it cannot be switched off, so its work is timed separately. The time for one tensor (a write, a save,
// and `most_uses` uses), times the number of tensors that the operations of a step could save (`most_saved` each), is
// an upper limit. The cost is this limit divided by the median time of a plain step.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/configs.h"

namespace orrery {

/// No operation of a Transformer or a GPT saves more tensors for its backward, or uses one of them more often.
inline constexpr i64 most_saved = 4, most_uses = 10;

/// What a promise adds to the time of a step.
struct PromiseCost {
  i64 promise;       ///< its number in tests/promises/README.md
  std::string what;  ///< "denormal weights"
  double cost;       ///< as a fraction of the plain step
  double bound;      ///< the largest cost allowed
  bool kept() const { return cost <= bound; }
};

struct PromiseFigures {
  std::string config;
  double step = 0;              ///< seconds of a plain step, the median
  i64 operations = 0;           ///< recorded in a step
  double seconds_of_saved = 0;  ///< to count, note and compare the version of one tensor
  std::vector<PromiseCost> costs;
};

/// Seconds for one tensor's version: one write, one save, `most_uses` uses.
double seconds_of_version();

/// Fills `weight` with numbers of both signs that are too small to be normal.
void make_denormal(Tensor& weight, Rng& rng);

PromiseFigures measure_promises(const BenchConfig& config, const BenchOptions& options);

/// At most 100 columns.
void print_promises(std::ostream& out, const PromiseFigures& figures);

}  // namespace orrery
