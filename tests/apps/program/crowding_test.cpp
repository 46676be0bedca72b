// Chapter 9. Tests of the rule that takes threads back: fed with times, so that no clock and no machine plays a part;
// and one of the whole, on a machine that is made busy.
#include "apps/program/crowding.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace orrery;

namespace {

// A rule, and a machine where every look finds that threads waited for `part` of the time.
struct BusyMachine {
  CrowdingRule rule;
  int asked;
  double now = 0;

  // Looks every 10 ms for `seconds`; returns for how many of them all threads ran.
  int looks_with_all(double seconds, double part) {
    int all = 0;
    for (const double end = now + seconds; now < end; now += 0.01)
      all += rule.update(now, rule.threads() > 1 ? 0.01 * part : 0, asked) == asked;
    return all;
  }
};

}  // namespace

TEST_CASE("crowding: a free machine gives all threads at once and always") {
  BusyMachine machine{.rule = {}, .asked = 4};
  CHECK(machine.rule.update(0, 0, 4) == 4);
  CHECK(machine.looks_with_all(10, 0) >= 999);
  CHECK(machine.rule.update(machine.now, 0, 8) == 8);
}

TEST_CASE("crowding: what waits little, or seldom, keeps all threads") {
  BusyMachine machine{.rule = {}, .asked = 2};
  CHECK(machine.looks_with_all(10, 0.15) >= 999);
  for (int i = 0; i < 100; ++i) {  // a time slice of 4 ms every 50 ms
    CHECK(machine.rule.update(machine.now += 0.01, 0.004, 2) == 2);
    CHECK(machine.looks_with_all(0.04, 0) >= 4);
  }
}

TEST_CASE("crowding: beside a program that computes, two threads become one, and try again ever more seldom") {
  BusyMachine machine{.rule = {}, .asked = 2};
  CHECK(machine.looks_with_all(0.1, 0.5) <= 6);
  CHECK(machine.rule.threads() == 1);
  CHECK(machine.looks_with_all(3, 0.5) <= 30);
  const int tries = machine.looks_with_all(16, 0.5);
  CHECK(tries <= 30);
  CHECK(tries >= 10);
}

TEST_CASE("crowding: when the other program ends, all threads come back, and a new one is met as the first was") {
  BusyMachine machine{.rule = {}, .asked = 2};
  machine.looks_with_all(20, 0.5);
  machine.looks_with_all(3.5, 0);
  CHECK(machine.rule.threads() == 2);
  CHECK(machine.looks_with_all(5, 0) >= 499);
  machine.looks_with_all(0.06, 0.5);
  CHECK(machine.rule.threads() == 1);
  machine.looks_with_all(0.12, 0);
  CHECK(machine.rule.threads() == 2);
}

TEST_CASE("crowding: as many threads are left as had cores, and at least one") {
  CrowdingRule rule;
  CHECK(rule.update(0, 0, 8) == 8);
  CHECK(rule.update(0.01, 0.03, 8) == 5);  // 3 of the 8 stood still all the time
  CHECK(rule.update(0.02, 0, 8) == 5);
  CHECK(rule.update(0.03, 0.04, 8) == 1);
  CrowdingRule none;
  none.update(0, 0, 8);
  CHECK(none.update(0.01, 0.09, 8) == 1);
}

TEST_CASE("crowding: another number of threads begins anew") {
  BusyMachine machine{.rule = {}, .asked = 2};
  machine.looks_with_all(20, 0.5);
  CHECK(machine.rule.update(machine.now += 0.01, 0, 3) == 3);
}

TEST_CASE("crowding: loops that are looked at run every task once, whatever the machine does beside them") {
  std::vector<int> runs(1000, 0);
  std::thread([&] {
    set_threads(3);
    loop_rules.team = crowding_team;
    for (int loop = 0; loop < 2000; ++loop) parallel_tasks(1000, [&](i64 i) { ++runs[static_cast<size_t>(i)]; });
  }).join();
  CHECK(runs == std::vector<int>(1000, 2000));
}

namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// How many threads run a loop whose tasks take about a millisecond.
size_t threads_of_a_loop() {
  std::mutex lock;
  std::set<std::thread::id> seen;
  parallel_tasks(2, [&](i64) {
    for (const auto begin = std::chrono::steady_clock::now(); seconds_since(begin) < 1e-3;) {}
    const std::lock_guard guard(lock);
    seen.insert(std::this_thread::get_id());
  });
  return seen.size();
}

}  // namespace

TEST_CASE("crowding: beside more programs that compute than there are cores, threads wait, and a loop takes one") {
  std::atomic<bool> ended{false};
  std::vector<std::thread> others;
  for (unsigned i = 0; i < 2 * std::max(1U, std::thread::hardware_concurrency()); ++i)
    others.emplace_back([&] {
      while (!ended) {}
    });
  i64 waited = 0;
  size_t least = 2;
  std::thread([&] {
    set_threads(2);
    loop_rules.team = crowding_team;
    const i64 before = nanoseconds_without_core();
    for (const auto begin = std::chrono::steady_clock::now(); seconds_since(begin) < 20 && least == 2;)
      least = threads_of_a_loop();
    waited = nanoseconds_without_core() - before;
  }).join();
  ended = true;
  for (std::thread& other : others) other.join();
  CHECK(least == 1);
  CHECK(waited > 0);
}
