// Chapter 8. How long something takes: one program of each chapter ends with a line "measured: ...".
//
// Its counts are the same everywhere, and a test looks for them in the text; its times are those of a machine.
#pragma once

#include <algorithm>
#include <limits>

#include "core/machine/clock.h"

namespace orrery::book {

/// The ms of the shortest of five runs of `work`, each after `prepare`: what else a machine has to do makes runs
/// longer, and none shorter.
template <class Work, class Prepare> double shortest_ms(const Work& work, const Prepare& prepare) {
  double shortest = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 5; ++run) {
    prepare();
    const double begin = steady_seconds();
    work();
    shortest = std::min(shortest, 1e3 * (steady_seconds() - begin));
  }
  return shortest;
}
template <class Work> double shortest_ms(const Work& work) {
  return shortest_ms(work, [] {});
}

}  // namespace orrery::book
