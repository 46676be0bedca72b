// Chapter 9. `orrery bench promises`: what three promises of tests/promises/README.md cost a training step.
//
//   11  a saved tensor that was changed is an error: each write counts a version, each save notes it, each use compares
//   12  the first NaN is named: the loss and the norm of the gradients are looked at before each step
//   15  denormal numbers cost nothing: every thread takes them as zero
// Method for 12 and 15: steps take turns, one plain and one that differs in the point alone, in changing order. Each
// turn gives a ratio; the median of all ratios, minus 1, is the cost. So neither a machine that slows down nor one slow
// step moves it; below 0 it says how small a cost could have been seen.
// Method for 11: it cannot be switched off, so what it does is timed by itself. One tensor's share (a write, a save, as
// many uses) times all that the operations of a step could save (as many tensors each as the one that saves the most)
// is an upper limit, of the plain step's median time.
// Serves: core/machine/parallel.h
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/configs.h"

namespace orrery {

/// No operation of autograd/ops/ saves more tensors for its backward, and none asks for one of them more often.
inline constexpr i64 most_saved = 4, most_uses = 10;

/// What a promise adds to the time of a step.
struct PromiseCost {
  i64 promise;       ///< its number in tests/promises/README.md
  std::string what;  ///< "denormal weights"
  double cost;       ///< as a part of the plain step
  double bound;      ///< what the cost may reach
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
