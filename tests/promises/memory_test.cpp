// Chapter 8. Promise 25: from the third equal step on, a training, or a model that writes, asks the system for nothing:
// no memory for tensors, and no page for anything.
#include "core/machine/memory.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>

#include "apps/measure/bench/training.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoder_state.h"
#include "nn/models/gpt.h"
#include "tests/core/support.h"
#include "tests/promises/rerun.h"

using namespace orrery;

namespace {

struct Requests {
  i64 of_allocator;                 // times it asked the system for memory
  i64 allocations;                  // blocks it handed out
  long small_faults, large_faults;  // pages the system had to find, in memory and on disk
};

Requests requests() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const MemoryCounters counters = memory_counters();
  return {counters.system_requests, counters.allocations, usage.ru_minflt, usage.ru_majflt};
}

template <class Step> Requests requests_of(const Step& step) {
  const Requests start = requests();
  step();
  const Requests end = requests();
  return {end.of_allocator - start.of_allocator, end.allocations - start.allocations,
          end.small_faults - start.small_faults, end.large_faults - start.large_faults};
}

template <class Step> void check_third_step(const std::string& what, const Step& step) {
  CAPTURE(what);
  requests_of(step);
  const Requests second = requests_of(step);
  // Now and then the system itself moves a page, more often beside other programs. So two of eight steps may meet one,
  // and there are three attempts. A request in every step would show in all eight, one in every other step in four.
  constexpr int attempts = 3, steps = 8, most_disturbed = 2;
  int fewest = steps;
  for (int attempt = 0; attempt < attempts && fewest > most_disturbed; ++attempt) {
    int disturbed = 0;
    for (int i = 0; i < steps; ++i) {
      const Requests later = requests_of(step);
      CHECK(later.of_allocator == 0);
      CHECK(later.allocations == second.allocations);
      disturbed += later.small_faults > 0 || later.large_faults > 0;
    }
    fewest = std::min(fewest, disturbed);
  }
  CHECK(fewest <= most_disturbed);
}

void check_training(const BenchConfig& config) {
  BenchTraining training(config, config.dropout, 1);
  check_third_step(config.name, [&] { training.step(); });
}

// A GPT that reads the last token of each stream and its cache, and writes the next.
void check_writing() {
  const NoGradient nothing_recorded;
  Rng rng(1);
  const nn::Gpt model(nn::gpt_preset("nanogpt"), rng);
  nn::DecoderState state = nn::decoder_state(model, 2, 32);
  Tensor last = zeros({2, 1}, Dtype::i32);
  check_third_step("writing", [&] { last = argmax(model.head(nn::next_positions(model, last, state)).value()); });
}

}  // namespace

TEST_CASE("promise 25: from the third equal step on, a training asks the system for neither memory nor pages") {
  // In a process of its own, which begins with nothing.
  if (promises::checked_with_sleeping_threads("promise 25: from the third equal step on*")) return;
  if (!small::counts_memory()) return;
  check_writing();  // first, since it needs the least: what trainings have left free would serve it
  check_training(bench_config("toy"));
  check_training(scaled(bench_config("tiny-mt"), 20, 0, 0));  // its head takes two chunks of rows
  check_training(bench_config("nanogpt"));
  CHECK(memory_counters().system_requests > 0);  // those of the first steps
}
