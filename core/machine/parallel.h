// Chapter 8. Threads: the only file with OpenMP's parallel pragmas.
//
// Bits must not depend on the number of threads. So work is cut into chunks whose borders depend on (n, grain) alone,
// each chunk is computed by one thread, and what chunks produce is combined in the order of the chunks. Bodies must not
// throw (an exception that leaves a parallel region ends the program) and must not allocate.
// Read next: core/products/blas.h
#pragma once

#include <algorithm>
#include <memory>

#include "core/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery {

/// Elements a chunk of an elementwise loop holds: enough that a region (0.5 microseconds) does not show, few enough
/// that threads get equal shares of small tensors: toy's steps are 4 % shorter than with 16,384, which cuts its 49,152
/// activations into 3, and with 4,096 no shorter. No part of any bit.
inline constexpr i64 elementwise_grain = 8192;

/// Threads that parallel loops use from now on; at least 1. Results do not depend on it.
void set_threads(int threads);
int threads();

/// While it lives, threads that wait for others go to sleep instead of spinning: where loops are tiny, or there are
/// more threads than free cores, a thread that spins only keeps the others from running. For tests and proofs.
class SleepingThreads {
 public:
  SleepingThreads();
  ~SleepingThreads();
  SleepingThreads(const SleepingThreads&) = delete;
  SleepingThreads& operator=(const SleepingThreads&) = delete;

 private:
  struct Idle;
  std::unique_ptr<Idle> idle_;
};

/// While it lives, loops that this thread begins are cut into chunks of at most `grain` elements, so that a tiny tensor
/// too is shared among threads. For tests and proofs: results may differ from those without it, but not with the number
/// of threads. A product of two single matrices is cut as before, by its size (core/products/blas.h).
class GrainScope {
 public:
  explicit GrainScope(i64 grain) : grain_(grain), before_(current_) { current_ = this; }
  ~GrainScope() { current_ = before_; }
  GrainScope(const GrainScope&) = delete;
  GrainScope& operator=(const GrainScope&) = delete;

  /// Loops of more than one task that this thread has begun since.
  i64 loops_cut() const { return loops_cut_; }

  /// What parallel loops ask: the grain to use where `wanted` is the usual one.
  static i64 grain(i64 wanted) { return current_ ? std::min(wanted, current_->grain_) : wanted; }
  static void loop_begins(i64 tasks) {
    if (current_ && tasks > 1) ++current_->loops_cut_;
  }

 private:
  static inline thread_local GrainScope* current_ = nullptr;
  const i64 grain_;
  i64 loops_cut_ = 0;
  GrainScope* const before_;
};

/// Numbers below the smallest normal one are taken as zero on this thread: one denormal product is 180 times slower
/// than a normal one. Set at the entry of every chunk loop, main thread included, so that results do not depend on the
/// thread.
inline void flush_denormals() {
#if defined(__x86_64__)
  constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
  const unsigned state = _mm_getcsr(), wanted = state | flush_to_zero | denormals_are_zero;
  if (state != wanted) _mm_setcsr(wanted);
#elif defined(__aarch64__)
  u64 state;
  asm volatile("mrs %0, fpcr" : "=r"(state));
  asm volatile("msr fpcr, %0" ::"r"(state | (u64{1} << 24)));
#endif
}

/// body(i) for i in [0, count), each i on one thread. Opens a parallel region even for one task: inside it OpenBLAS
/// sees that it must not thread a product itself.
template <class Body>
void parallel_tasks(i64 count, const Body& body) {
  GrainScope::loop_begins(count);
#pragma omp parallel
  {
    flush_denormals();
#pragma omp for schedule(static)
    for (i64 i = 0; i < count; ++i) body(i);
  }
}

/// body(begin, end) over chunks of `grain` elements of [0, n); a single chunk stays on the calling thread.
template <class Body>
void parallel_for(i64 n, i64 grain, const Body& body) {
  grain = GrainScope::grain(grain);
  if (n <= grain) {
    flush_denormals();
    if (n > 0) body(i64{0}, n);
    return;
  }
  parallel_tasks((n + grain - 1) / grain, [&](i64 chunk) { body(chunk * grain, std::min(n, (chunk + 1) * grain)); });
}

/// The grain for rows of `columns` elements each: about `elementwise_grain` elements, at least one row.
inline i64 row_grain(i64 columns) { return std::max<i64>(1, elementwise_grain / std::max<i64>(1, columns)); }

}  // namespace orrery
