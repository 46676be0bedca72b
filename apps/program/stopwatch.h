// Chapter 9. Measuring time: how long something took, the median of several times, the shortest of many.
//
// For training steps we use the median: a single slow step, while the system did something else, does not change it.
// For kernels we use the shortest time: everything else that the machine does only makes a kernel slower.
#pragma once

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/machine/clock.h"

namespace orrery {

/// Measures the time since its construction.
class Stopwatch {
 public:
  double seconds() const { return steady_seconds() - start_; }

 private:
  double start_ = steady_seconds();
};

/// Seconds that one call of `work` takes.
template <class Work> double seconds_of(const Work& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

/// The median of `values`; if their number is even, the mean of the two in the middle.
inline double median(std::vector<double> values) {
  check(!values.empty(), "median", "needs at least one value");
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Seconds of the fastest call of `work` among those that fit into `budget` seconds, but at least five. `prepare` is
/// called before each and not measured. The first call also allocates memory and does not count.
template <class Work, class Prepare> double fastest_seconds(double budget, const Work& work, const Prepare& prepare) {
  const auto run_once = [&] {
    prepare();
    return seconds_of(work);
  };
  run_once();
  const Stopwatch all;
  double fastest = run_once();
  for (int runs = 1; runs < 5 || all.seconds() < budget; ++runs) fastest = std::min(fastest, run_once());
  return fastest;
}
template <class Work> double fastest_seconds(double budget, const Work& work) {
  return fastest_seconds(budget, work, [] {});
}

}  // namespace orrery
