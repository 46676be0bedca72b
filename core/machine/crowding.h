// Chapter 8. Fewer threads for a while, where other programs keep the cores busy.
//
// A loop is done when the last of its threads is. Where another program runs on one of the cores, a thread stands still
// for milliseconds in a loop that takes microseconds, and all the others wait for it: two threads beside one busy
// program are slower than one. Bits do not depend on the number of threads, so it may change at any time.
//
// The system counts for each thread how long it was ready to run and had no core. About every 10 ms the threads of one
// loop read these counts. Where they grew by much more than now and then a little, loops run with as many threads as
// had cores, for 0.1 seconds, then with all again; each time that this fails the next try comes twice as late, at most
// every 1.6 seconds.
// Serves: core/machine/parallel.h
#pragma once

#include <atomic>

#include "core/dtype.h"

namespace orrery {

/// The rule alone: how many threads run, from what they waited. Times are in seconds; knows no clock.
class CrowdingRule {
 public:
  /// Between calls, `threads()` ran. `now` only grows; `waited` is how long they, together, had no core since the last
  /// call; `asked` is what set_threads asked for. Returns the threads to run from now on.
  int update(double now, double waited, int asked);
  /// Threads that run now; 0 before the first call.
  int threads() const { return threads_; }
  int asked() const { return asked_; }

 private:
  int asked_ = 0, threads_ = 0;
  double last_ = 0;      // when `update` was called last
  double too_long_ = 0;  // what threads waited beyond what is usual, not yet forgotten
  double all_since_ = 0, all_again_at_ = 0, pause_ = 0;
};

/// The threads of one loop.
struct Team {
  int threads;
  std::atomic<i64>* waited = nullptr;  ///< where its threads add how long they waited; null in most loops
  /// Called by each of its threads.
  void look() const {
    if (waited != nullptr) add_wait();
  }

 private:
  void add_wait() const;
};

/// The threads of a loop that the calling thread begins, where `asked` threads are set.
Team crowding_team(int asked);

/// Nanoseconds for which the calling thread has been ready to run and had no core.
i64 nanoseconds_without_core();

}  // namespace orrery
