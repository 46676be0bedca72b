// Chapter 8. The number of threads, and what must happen when the process forks.
//
// Read next: core/blas.h
#include "core/parallel.h"

#include <omp.h>
#include <pthread.h>

namespace orrery {

void set_threads(int threads) {
  check(threads >= 1, "set_threads", "needs at least 1 thread, got ", threads);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

int threads() { return omp_get_max_threads(); }

namespace {
// libgomp's pool does not survive fork: a region in the child would wait for threads that are not there.
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] { omp_set_num_threads(1); });
}  // namespace

}  // namespace orrery
