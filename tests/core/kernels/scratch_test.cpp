// Chapter 8. Tests of tasks that have scratch.
#include "core/kernels/scratch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/core/support.h"

using namespace orrery;

TEST_CASE("every task runs once, with scratch that no other thread writes to, for any number of threads") {
  for (const int count : {1, 3, 8}) {
    const small::Threads scope(count);
    for (const i64 tasks : {1, 7, 100}) {
      std::vector<int> runs(static_cast<size_t>(tasks)), torn(static_cast<size_t>(tasks));
      kernels::tasks_with_scratch<float>(tasks, 1000, [&](i64 i, float* scratch) {
        std::fill_n(scratch, 1000, static_cast<float>(i));
        torn[static_cast<size_t>(i)] = std::count(scratch, scratch + 1000, static_cast<float>(i)) != 1000;
        ++runs[static_cast<size_t>(i)];
      });
      CHECK(std::count(runs.begin(), runs.end(), 1) == tasks);
      CHECK(std::count(torn.begin(), torn.end(), 0) == tasks);
    }
  }
}
