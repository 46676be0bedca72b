// Chapter 9. Measuring time: how long something took, the middle of several times, the shortest of many.
//
// The median is what a training feels: one slow step, when the system did something else, does not move it. The
// shortest time is what a kernel can do: whatever else the machine does only makes it slower.
// Serves: apps/toy/toy.cpp
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/error.h"

namespace orrery {

/// Seconds since some fixed moment.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Runs from when it is made.
class Stopwatch {
 public:
  double seconds() const { return steady_seconds() - start_; }

 private:
  double start_ = steady_seconds();
};

/// Seconds that one call of `work` takes.
template <class Work>
double seconds_of(const Work& work) {
  const Stopwatch watch;
  work();
  return watch.seconds();
}

/// The middle of `values` in order of size; the mean of the two in the middle where their number is even.
inline double median(std::vector<double> values) {
  check(!values.empty(), "median", "needs at least one value");
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Seconds of the fastest call of `work` among those that fit into `budget` seconds, at least five. `prepare` is called
/// before each and not measured. A first call pays for memory and does not count.
template <class Work, class Prepare>
double fastest_seconds(double budget, const Work& work, const Prepare& prepare) {
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
template <class Work>
double fastest_seconds(double budget, const Work& work) {
  return fastest_seconds(budget, work, [] {});
}

}  // namespace orrery
