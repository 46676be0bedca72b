// Chapter 8. Promise 25: a repeated training step asks the system for nothing: no memory, no page.
#include "core/memory.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "apps/toy_training.h"
#include "tests/promises/rerun.h"

using namespace orrery;

namespace {

struct Requests {
  i64 of_allocator;                 // times it asked the system for memory
  long small_faults, large_faults;  // pages the system had to find, in memory and on disk
};

Requests requests() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {memory_counters().system_requests, usage.ru_minflt, usage.ru_majflt};
}

// Under AddressSanitizer every block comes from the system and nothing is counted.
bool counts() {
  const i64 before = memory_counters().allocations;
  deallocate(allocate(1));
  return memory_counters().allocations > before;
}

// What `steps` steps ask for, after some to begin with. Of several stretches the quietest counts: now and then the
// system takes a page that was not used for a while, and a step has to ask for it again.
Requests requests_of(const ToyRecipe& recipe, int before, int steps) {
  ToyTraining training(recipe);
  for (int i = 0; i < before; ++i) training.step();
  Requests least{0, std::numeric_limits<long>::max(), std::numeric_limits<long>::max()};
  for (int stretch = 0; stretch < 4; ++stretch) {
    const Requests start = requests();
    for (int i = 0; i < steps; ++i) training.step();
    const Requests end = requests();
    least.of_allocator += end.of_allocator - start.of_allocator;
    least.small_faults = std::min<long>(least.small_faults, end.small_faults - start.small_faults);
    least.large_faults = std::min<long>(least.large_faults, end.large_faults - start.large_faults);
  }
  return least;
}

}  // namespace

TEST_CASE(
    "promise 25: from the fourth step on, training the toy's model asks the system for neither memory nor pages") {
  // In a process of its own, which begins with nothing.
  if (promises::checked_with_sleeping_threads("promise 25: from the fourth step*")) return;
  if (!counts()) return;
  const Requests later = requests_of({}, 3, 5);
  CHECK(memory_counters().system_requests > 0);  // those of the first steps
  CHECK(later.of_allocator == 0);
  CHECK(later.small_faults == 0);
  CHECK(later.large_faults == 0);
}
