// Chapter 9. How long threads waited for a core, and what follows from it.
#include "apps/program/crowding.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>

#include "core/machine/clock.h"

namespace orrery {
namespace {

// Background programs take less than `usual_part` of a core, in pieces of up to 4 ms. Waiting beyond that part is added
// up, and threads are given up when it exceeds `most_too_long` seconds. A program that computes takes half a core, 3 ms
// more than that part between two looks, so the fourth look gives threads up.
constexpr double usual_part = 0.2, most_too_long = 0.01;
constexpr double seconds_between_looks = 0.01;
// Seconds for which fewer threads run; they double each time, and start again once all threads ran for `calm` seconds.
constexpr double first_pause = 0.1, longest_pause = 3.2, calm = 0.1;

}  // namespace

int CrowdingRule::update(double now, double waited, int asked) {
  if (asked != asked_) {
    asked_ = threads_ = asked;
    last_ = all_since_ = now;
    too_long_ = 0;
    pause_ = first_pause;
    return threads_;
  }
  const double passed = std::max(now - last_, 1e-6);
  last_ = now;
  const bool all = threads_ == asked_;
  if (!all && now >= all_again_at_) {
    threads_ = asked_;
    all_since_ = now;
    too_long_ = 0;
    return threads_;
  }
  if (threads_ == 1) return threads_;
  too_long_ = std::max(0.0, too_long_ + waited - usual_part * passed);
  if (all && now - all_since_ >= calm) pause_ = first_pause;
  if (too_long_ < most_too_long) return threads_;
  const double without_core = std::clamp(std::round(waited / passed), 1.0, threads_ - 1.0);
  if (all) {
    all_again_at_ = now + pause_;
    pause_ = std::min(2 * pause_, longest_pause);
  }
  threads_ -= static_cast<int>(without_core);
  too_long_ = 0;
  return threads_;
}

// Linux: the second number of schedstat. Elsewhere, each time that the thread lost its core counts as a millisecond.
i64 nanoseconds_without_core() {
  if (const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); file >= 0) {
    char text[80];
    const ssize_t size = read(file, text, sizeof text);
    close(file);
    const char* const end = text + std::max<ssize_t>(0, size);
    i64 ran = 0, waited = 0;
    const auto first = std::from_chars(text, end, ran);
    if (first.ec == std::errc() && first.ptr != end && std::from_chars(first.ptr + 1, end, waited).ec == std::errc())
      return waited;
  }
#if defined(RUSAGE_THREAD)
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw * i64{1'000'000};
#else
  return 0;
#endif
}

namespace {

// The state of each thread that begins loops.
struct Crowding {
  CrowdingRule rule;
  std::atomic<i64> waited{0};  // nanoseconds, added by the threads of the loop that looked last
  bool looked = false;         // `waited` has not been judged yet
  bool stale = true;           // for some of these threads, the look before is missing or long ago
  double last_look = 0;

  Team team(int asked);
};
thread_local Crowding crowding;
thread_local i64 wait_before = 0;  // this thread's count when it looked last

// Adds how long this thread waited since its last look to the nanoseconds that `sum` points to.
void add_wait(void* sum) {
  const i64 now = nanoseconds_without_core();
  static_cast<std::atomic<i64>*>(sum)->fetch_add(std::max<i64>(0, now - wait_before), std::memory_order_relaxed);
  wait_before = now;
}

// A look takes two loops. The threads of the first add how long they waited; when the next loop begins, the rule judges
// their sum. The first sum after a pause or a change of threads is stale and counts as 0. While one thread runs, nobody
// looks, and the rule is asked only whether it is time to try all threads again.
Team Crowding::team(int asked) {
  const double now = steady_seconds();
  const bool changed = asked != rule.asked(), due = changed || now >= last_look + seconds_between_looks;
  if (looked || changed || (due && rule.threads() == 1)) {
    const double together = 1e-9 * static_cast<double>(waited.exchange(0, std::memory_order_relaxed));
    const int before = rule.threads();
    stale = rule.update(now, stale ? 0 : together, asked) > before;
    looked = false;
  }
  if (!due) return {rule.threads()};
  looked = rule.threads() > 1;
  stale = stale || now > last_look + 5 * seconds_between_looks;
  last_look = now;
  if (!looked) return {rule.threads()};
  return {rule.threads(), add_wait, &waited};
}

}  // namespace

Team crowding_team(int asked) {
  if (asked == 1) return {asked};
  return crowding.team(asked);
}

}  // namespace orrery
