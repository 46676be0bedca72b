// Chapter 3. How loops are shared among threads during tests and proofs.
//
// To prove that results do not depend on the threads, even tiny loops must be cut into many chunks, and run by as many
// threads as the proof asks for, on any machine. These scopes set `loop_rules` (core/machine/parallel.h) for the thread
// that makes them.
#pragma once

#include <memory>

#include "core/machine/parallel.h"

namespace orrery {

/// While it lives, loops that this thread begins use all threads that were set, even on a busy machine and for little
/// work.
class ExactThreads {
 public:
  ExactThreads();
  ~ExactThreads();
  ExactThreads(const ExactThreads&) = delete;
  ExactThreads& operator=(const ExactThreads&) = delete;

  /// How many loops of more than one task this thread has begun so far while an ExactThreads lived.
  static i64 loops();

 private:
  const LoopRules before_;
};

/// While it lives, threads that wait for others sleep instead of spinning. Where loops are tiny, or there are more
/// threads than free cores, a spinning thread only keeps the others from running. Includes ExactThreads.
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

/// While it lives, loops that this thread begins are cut into chunks of at most `grain` elements, so that even a tiny
/// tensor is shared among threads. Results may differ from those without it, but do not depend on the number of
/// threads. Products of two single matrices with many rows are cut as without it, by their size (core/products/gemm.h).
class GrainScope {
 public:
  explicit GrainScope(i64 grain) : before_(loop_rules.largest_grain) { loop_rules.largest_grain = grain; }
  ~GrainScope() { loop_rules.largest_grain = before_; }
  GrainScope(const GrainScope&) = delete;
  GrainScope& operator=(const GrainScope&) = delete;

 private:
  const i64 before_;
};

}  // namespace orrery
