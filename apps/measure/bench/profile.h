// Chapter 9. `orrery bench profile`: where the time of a training step goes.
//
// Every other step is observed (operation_times.h). The medians of observed and other steps show what observing costs.
// The rest of a step, besides its operations, is clipping, Adam, and the tape: making nodes and visiting them.
#pragma once

#include <ostream>
#include <vector>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/configs.h"
#include "apps/measure/bench/operation_times.h"

namespace orrery {

/// A part of a step. All parts together make up the step.
struct ProfileRow {
  std::string name;
  std::string direction;                             ///< "forward" or "backward"; "" for anything but operations
  double calls = 0;                                  ///< per step
  double seconds = 0;                                ///< per step, the mean over all observed steps
  double share = 0;                                  ///< of the step, 0 to 1
  double flop_per_second = 0, bytes_per_second = 0;  ///< 0 where unknown
};

struct Profile {
  std::vector<ProfileRow> rows{};       ///< the slowest first
  double seconds = 0;                   ///< of an observed step: the mean, and the sum of all rows
  double observed = 0, unobserved = 0;  ///< medians of steps with and without an observer
  double noise = 0;                     ///< by how many seconds their difference varies by chance
  double overhead() const { return observed / unobserved - 1; }
};

/// How far the median of these numbers may be from that of many more: their middle half, over the root of their count.
double noise_of_median(std::vector<double> values);

Profile measure_profile(const BenchConfig& config, const BenchOptions& options);

/// At most 100 columns wide. The last line says what observing cost, or that noise hides it.
void print_profile(std::ostream& out, const Profile& profile);

}  // namespace orrery
