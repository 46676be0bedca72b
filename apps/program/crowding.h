// Chapter 9. Fewer threads for a while, when other programs keep the cores busy.
//
// A loop ends when its last thread does. If another program runs on one of the cores, a thread may stand still for
// milliseconds in a loop that takes microseconds, and all other threads wait for it: on two cores, beside one busy
// program, two threads are slower than one. Bits do not depend on the number of threads, so it may change at any time.
//
// The system counts for each thread how long it was ready to run and had no core. About every 10 ms, the threads of one
// loop read these counts. If threads waited much longer than usual, then for the next 0.1 s loops use only as many
// threads as had a core; after that they try all threads again. Each time that fails, the pause doubles, up to 3.2 s.
// A program turns this on for the loops of a thread: loop_rules.team = crowding_team;
#pragma once

#include "core/machine/parallel.h"

namespace orrery {

/// The rule by itself: from how long threads waited, how many should run. Times in seconds; it reads no clock.
class CrowdingRule {
 public:
  /// To be called repeatedly. Since the last call, `threads()` threads ran, and together had no core for `waited`;
  /// `now` never decreases; `asked` is what set_threads asked for. Returns how many threads to run from now on.
  int update(double now, double waited, int asked);
  /// Threads that run now; 0 before the first call.
  int threads() const { return threads_; }
  int asked() const { return asked_; }

 private:
  int asked_ = 0, threads_ = 0;
  double last_ = 0;      // when `update` was called last
  double too_long_ = 0;  // waiting time beyond the usual, added up; never negative
  double all_since_ = 0, all_again_at_ = 0, pause_ = 0;
};

/// The threads of a loop that the calling thread begins, if `asked` threads are set: for `loop_rules.team`.
Team crowding_team(int asked);

/// Nanoseconds for which the calling thread has been ready to run and had no core.
i64 nanoseconds_without_core();

}  // namespace orrery
