// Chapter 8. The number of threads, and what must happen when the process forks.
#include "core/machine/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>

namespace orrery {

void set_threads(int threads) {
  check(threads >= 1, "set_threads", "needs at least 1 thread, got ", threads);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

int threads() {
  if (omp_get_active_level() >= omp_get_max_active_levels()) return 1;
  return std::min(omp_get_max_threads(), omp_get_thread_limit());
}

namespace {
// Threads that wait for the next parallel region do not survive a fork, and a region in the child would wait for them
// forever. So the thread that forks ends them first; parent and child start new ones in their next region. Inside a
// region of the host program they cannot be ended; there the child, which is inside that region too, starts its own.
// LLVM's runtime, which defines KMP_VERSION_MAJOR, prepares a child for new threads by itself.
#ifndef KMP_VERSION_MAJOR
[[maybe_unused]] const int fork_handler =
    pthread_atfork([] { omp_pause_resource_all(omp_pause_hard); }, nullptr, nullptr);
#endif
}  // namespace

}  // namespace orrery
