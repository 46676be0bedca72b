// Chapter 3. Exact threads, whose loops are counted, and threads that sleep while they wait.
#include "autograd/check/scheduling.h"

#include <omp.h>

#include <future>
#include <thread>

namespace orrery {
namespace {

thread_local i64 loops_of_exact_threads = 0;

Team exact_team(int asked) {
  ++loops_of_exact_threads;
  return {asked};
}

}  // namespace

ExactThreads::ExactThreads() : before_(loop_rules) {
  loop_rules.team = exact_team;
  loop_rules.least_work = 0;
}
ExactThreads::~ExactThreads() {
  loop_rules.team = before_.team;
  loop_rules.least_work = before_.least_work;
}
i64 ExactThreads::loops() { return loops_of_exact_threads; }

// In libgomp, a waiting thread spins 300,000 times before it sleeps, but only 100 times if there are more OpenMP
// threads than CPUs (its manual, GOMP_SPINCOUNT). So a thread of our own starts that many threads, which then have
// nothing to do.
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
