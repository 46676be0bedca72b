// Chapter 8. Threads: the only file with OpenMP's parallel pragmas.
//
// Bits must not depend on the number of threads. So work is cut into chunks whose borders depend on (n, grain) alone,
// each chunk is computed by one thread, and what chunks produce is combined in the order of the chunks. Bodies must not
// throw (an exception that leaves a parallel region ends the program) and must not allocate.
// Read next: core/products/gemm.h
#pragma once

#include <algorithm>
#include <limits>

#include "core/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orrery {

/// Elements in a chunk of an elementwise loop: large enough to hide the cost of a parallel region, small enough to
/// share small tensors evenly (apps/measure/bench/README.md). Results do not depend on it.
inline constexpr i64 elementwise_grain = 8192;

/// Operations, such as multiply-adds, of a loop below which a second thread costs more than it saves: a parallel region
/// costs half a microsecond, and what another core wrote has to come from there (apps/measure/bench/README.md). Results
/// do not depend on it.
inline constexpr i64 least_shared_work = i64{1} << 17;
/// What an element of other loops counts as, so that both constants are one rule.
inline constexpr i64 element_work = least_shared_work / elementwise_grain;

/// Sets the number of threads for parallel loops that this thread begins from now on; at least 1. Results do not depend
/// on it.
void set_threads(int threads);
/// That number, or less if OMP_THREAD_LIMIT or OMP_MAX_ACTIVE_LEVELS allow only less; inside a parallel region of the
/// host program 1, unless the host allows nested regions.
int threads();

/// The threads of one loop of several tasks.
struct Team {
  int threads;
  void (*on_each)(void* state) = nullptr;  ///< called by each of them before its first task; must not throw
  void* state = nullptr;
};

/// How loops that this thread begins are shared among threads. Programs give threads up on a busy machine
/// (apps/program/crowding.h); proofs force other schedules (autograd/check/scheduling.h).
struct LoopRules {
  i64 largest_grain = std::numeric_limits<i64>::max();  ///< chunks have at most this many elements
  i64 least_work = least_shared_work;                   ///< loops of fewer operations stay on their thread
  Team (*team)(int asked) = nullptr;  ///< who runs a loop where `asked` threads are set; if null, that many
};
inline thread_local LoopRules loop_rules;

/// While it lives, numbers below the smallest normal one (denormal numbers) are treated as zero on this thread, since
/// arithmetic with them is much slower (apps/measure/bench/README.md). Every loop below does this on each of its
/// threads, the caller's included, so that results depend neither on the thread nor on the mode that a host program has
/// set. The host's mode is restored.
class FlushDenormals {
 public:
  FlushDenormals() : before_(mode()) {
    if (before_ != (before_ | flush)) set_mode(before_ | flush);
  }
  ~FlushDenormals() {
    if (before_ != (before_ | flush)) set_mode(before_);
  }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
#if defined(__x86_64__)
  using Mode = unsigned;
  static constexpr Mode flush = 0x8000 | 0x0040;  // flush-to-zero, for results, and denormals-are-zero, for operands
  static Mode mode() { return _mm_getcsr(); }
  static void set_mode(Mode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
  using Mode = u64;
  static constexpr Mode flush = u64{1} << 24;  // both
  static Mode mode() {
    Mode mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set_mode(Mode mode) { asm volatile("msr fpcr, %0" ::"r"(mode) : "memory"); }
#else
  using Mode = unsigned;
  static constexpr Mode flush = 0;
  static Mode mode() { return 0; }
  static void set_mode(Mode) {}
#endif
  const Mode before_;
};

/// The threads for a loop of about so many operations: one, if it is small.
inline int threads_for(i64 work) { return work < loop_rules.least_work ? 1 : threads(); }

/// Task number i. One copy for one thread and for several: two might be compiled differently, and so round differently.
template <class Body> [[gnu::noinline]] void run_task(const Body& body, i64 i) { body(i); }

/// body(i) for i in [0, count), each i on one thread; a single task stays on the calling one, and so do tasks with less
/// than `least_shared_work` operations in all, where `work` says about how many they have.
template <class Body> void parallel_tasks(i64 count, const Body& body, i64 work = least_shared_work) {
  const bool shared = count > 1 && work >= loop_rules.least_work;
  const int asked = shared ? threads() : 1;
  const Team team = shared && loop_rules.team ? loop_rules.team(asked) : Team{asked};
  if (team.threads == 1) {  // without a region, for which libgomp allocates memory and calls the system
    const FlushDenormals flushed;
    if (team.on_each) team.on_each(team.state);
    for (i64 i = 0; i < count; ++i) run_task(body, i);
    return;
  }
#pragma omp parallel num_threads(team.threads)
  {
    const FlushDenormals flushed;
    if (team.on_each) team.on_each(team.state);
#pragma omp for schedule(static)
    for (i64 i = 0; i < count; ++i) run_task(body, i);
  }
}

/// body(begin, end) over chunks of `grain` elements of [0, n); a single chunk stays on the calling thread.
template <class Body> void parallel_for(i64 n, i64 grain, const Body& body) {
  grain = std::min(grain, loop_rules.largest_grain);
  if (n <= grain) {
    const FlushDenormals flushed;
    if (n > 0) body(i64{0}, n);
    return;
  }
  parallel_tasks((n + grain - 1) / grain, [&](i64 chunk) { body(chunk * grain, std::min(n, (chunk + 1) * grain)); });
}

/// The grain for rows of `columns` elements each: about `elementwise_grain` elements, at least one row.
inline i64 row_grain(i64 columns) { return std::max<i64>(1, elementwise_grain / std::max<i64>(1, columns)); }

}  // namespace orrery
