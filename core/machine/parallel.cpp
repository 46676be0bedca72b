// Chapter 8. The number of threads, and what must happen when the process forks.
//
// Serves: core/machine/parallel.h
#include "core/machine/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <future>
#include <thread>

namespace orrery {

void set_threads(int threads) {
  check(threads >= 1, "set_threads", "needs at least 1 thread, got ", threads);
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

int threads() { return omp_get_max_threads(); }

// libgomp spins 300,000 times before a thread sleeps, but 100 times where there are more OpenMP threads than CPUs (its
// manual, GOMP_SPINCOUNT). So a thread of our own opens that many, which have nothing to do.
struct SleepingThreads::Idle {
  std::promise<void> finished;
  std::thread thread{[done = finished.get_future()] {
    const int count = omp_get_num_procs() + 1;
    omp_set_num_threads(count);
    parallel_tasks(count, [](i64) {});
    done.wait();
  }};
  ~Idle() {
    finished.set_value();
    thread.join();
  }
};

SleepingThreads::SleepingThreads() : idle_(std::make_unique<Idle>()) {}
SleepingThreads::~SleepingThreads() = default;

namespace {
// libgomp's pool does not survive fork: a region in the child would wait for threads that are not there.
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] { omp_set_num_threads(1); });
}  // namespace

}  // namespace orrery
