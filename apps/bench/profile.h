// Chapter 9. `orrery bench profile`: where the time of a training step goes.
//
// Every other step is observed (operation_times.h), the ones between are not: their medians show what looking on costs.
// What is left of a step besides its operations is clipping and Adam, and the tape: making nodes, visiting them.
// Serves: core/machine/parallel.h
#pragma once

#include <ostream>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/configs.h"
#include "apps/bench/operation_times.h"

namespace orrery {

/// A part of a step; all parts together are the step.
struct ProfileRow {
  std::string name;
  std::string direction;                             ///< "forward" or "backward"; "" for what is no operation
  double calls = 0;                                  ///< a step
  double seconds = 0;                                ///< a step, the mean of all that were observed
  double share = 0;                                  ///< of the step, 0 to 1
  double flop_per_second = 0, bytes_per_second = 0;  ///< 0 where unknown
};

struct Profile {
  std::vector<ProfileRow> rows{};       ///< the slowest first
  double seconds = 0;                   ///< of an observed step: the mean, and the sum of all rows
  double observed = 0, unobserved = 0;  ///< medians of steps with and without an observer
  double overhead() const { return observed / unobserved - 1; }
};

Profile measure_profile(const BenchConfig& config, const BenchOptions& options);

/// At most 100 columns; the last line says what looking on cost.
void print_profile(std::ostream& out, const Profile& profile);

}  // namespace orrery
