// Chapter 3. Tests of the scopes that share loops among threads otherwise: tiny chunks, exact threads, sleep.
#include "autograd/check/scheduling.h"

#include <doctest/doctest.h>

#include <mutex>
#include <set>
#include <thread>

#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("a grain scope cuts tiny loops, alike for any number of threads") {
  const auto ends = [](i64 n) {
    std::set<i64> found;
    std::mutex lock;
    parallel_for(n, elementwise_grain, [&](i64, i64 end) {
      const std::lock_guard guard(lock);
      found.insert(end);
    });
    return found;
  };
  for (const int count : {1, 2, 3, 8}) {
    const Threads threads_scope(count);
    CHECK(ends(5) == std::set<i64>{5});
    const GrainScope outer(2);
    CHECK(ends(5) == std::set<i64>{2, 4, 5});
    {
      const GrainScope inner(1);
      CHECK(ends(3) == std::set<i64>{1, 2, 3});
    }
    CHECK(ends(2) == std::set<i64>{2});
  }
  CHECK(ends(5) == std::set<i64>{5});
}

TEST_CASE("while waiting threads sleep, as many threads do the same work") {
  const Threads scope(3);
  const SleepingThreads sleeping;
  CHECK(threads() == 3);
  std::mutex lock;
  std::set<std::thread::id> seen;
  parallel_tasks(3, [&](i64) {
    const std::lock_guard guard(lock);
    seen.insert(std::this_thread::get_id());
  });
  CHECK(seen.size() == 3);
}

TEST_CASE("loops run with exactly the threads that are set, for the thread that asked alone, until the scope ends") {
  const auto before = loop_rules.team;
  const i64 loops_before = ExactThreads::loops();
  {
    const ExactThreads exact;
    CHECK((loop_rules.team != nullptr));
    bool usual_elsewhere = false;
    std::thread([&] { usual_elsewhere = loop_rules.team == nullptr; }).join();
    CHECK(usual_elsewhere);
    std::mutex lock;
    std::set<std::thread::id> seen;
    const Threads eight(8);
    parallel_tasks(8, [&](i64) {
      const std::lock_guard guard(lock);
      seen.insert(std::this_thread::get_id());
    });
    CHECK(seen.size() == 8);
    parallel_tasks(1, [](i64) {});
    CHECK(ExactThreads::loops() == loops_before + 1);  // a loop of a single task is not shared
  }
  CHECK((loop_rules.team == before));
  parallel_tasks(8, [](i64) {});
  CHECK(ExactThreads::loops() == loops_before + 1);
}
