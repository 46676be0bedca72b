// Chapter 3. How loops are shared among threads while something is tested or proven.
//
// A proof that results do not depend on the threads needs tiny loops cut into many chunks, and as many threads as it
// asks for, on a machine with fewer cores. These scopes set `loop_rules` (core/machine/parallel.h) for the thread that
// makes them.
// Serves: autograd/check/proof.h
#pragma once

#include <memory>

#include "core/machine/parallel.h"

namespace orrery {

/// While it lives, loops that this thread begins run with all threads that are set, however busy the machine is.
class ExactThreads {
 public:
  ExactThreads() : before_(loop_rules.exact_threads) { loop_rules.exact_threads = true; }
  ~ExactThreads() { loop_rules.exact_threads = before_; }
  ExactThreads(const ExactThreads&) = delete;
  ExactThreads& operator=(const ExactThreads&) = delete;

 private:
  const bool before_;
};

/// While it lives, threads that wait for others go to sleep instead of spinning: where loops are tiny, or there are
/// more threads than free cores, a thread that spins only keeps the others from running. Includes ExactThreads.
class SleepingThreads {
 public:
  SleepingThreads();
  ~SleepingThreads();
  SleepingThreads(const SleepingThreads&) = delete;
  SleepingThreads& operator=(const SleepingThreads&) = delete;

 private:
  struct Idle;
  std::unique_ptr<Idle> idle_;
  ExactThreads exact_;
};

/// While it lives, loops that this thread begins are cut into chunks of at most `grain` elements, so that a tiny tensor
/// too is shared among threads. Results may differ from those without it, but not with the number of threads. A product
/// of two single matrices with many rows is cut as before, by its size (core/products/gemm.h).
class GrainScope {
 public:
  explicit GrainScope(i64 grain) : grain_before_(loop_rules.largest_grain), loops_before_(loop_rules.loops_shared) {
    loop_rules.largest_grain = grain;
    loop_rules.loops_shared = 0;
  }
  ~GrainScope() {
    loop_rules.largest_grain = grain_before_;
    loop_rules.loops_shared = loops_before_;
  }
  GrainScope(const GrainScope&) = delete;
  GrainScope& operator=(const GrainScope&) = delete;

  /// Loops of more than one task that this thread has begun since; while no inner scope lives.
  static i64 loops_cut() { return loop_rules.loops_shared; }

 private:
  const i64 grain_before_, loops_before_;
};

}  // namespace orrery
