// Chapter 3. Threads that sleep while they wait.
//
// Serves: autograd/check/proof.h
#include "autograd/check/scheduling.h"

#include <omp.h>

#include <future>
#include <thread>

namespace orrery {

// libgomp spins 300,000 times before a thread sleeps, but 100 times where there are more OpenMP threads than CPUs (its
// manual, GOMP_SPINCOUNT). So a thread of our own opens that many, which have nothing to do.
struct SleepingThreads::Idle {
  std::promise<void> finished;
  std::thread thread{[done = finished.get_future()] {
    const int count = omp_get_num_procs() + 1;
    set_threads(count);
    const ExactThreads exact;
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

}  // namespace orrery
