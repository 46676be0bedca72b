// Chapter 9. `orrery bench busy`: how long a training step takes while other programs use the cores too.
//
// The threads of a loop wait for the last one, and a thread whose core is taken by another program stops for
// milliseconds; apps/program/crowding.h describes the remedy. The bound: beside one busy program, and beside a second
// training, a step with all threads takes no longer than a step with a single thread; within 5 %, since such
// measurements vary by that much.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

#include "apps/measure/bench/micro.h"
#include "apps/measure/bench/training.h"
#include "apps/program/options.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {

// A process that computes until it is ended, at the latest together with this one.
class Neighbour {
 public:
  explicit Neighbour(const std::function<void()>& work) : child_(fork()) {
    check(child_ >= 0, "bench busy", "cannot start a process");
    if (child_ > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      while (true) work();
    } catch (...) { _exit(failed); }
  }
  ~Neighbour() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  const pid_t child_;
};

void compute() {
  for (volatile i64 count = 0; count < 1'000'000;) count = count + 1;
}

void make_steps(BenchTraining& training, i64 threads, i64 steps) {
  const int before = orrery::threads();
  set_threads(static_cast<int>(threads));
  for (i64 i = 0; i < steps; ++i) training.step();
  set_threads(before);
}

enum class Beside { nothing, program, training };

// Many steps at a time, since it is chance which of them loses a time slice. A second training uses as many threads as
// the one that is measured.
Trial steps_beside(Beside beside, const BenchOptions& options) {
  const BenchConfig& config = bench_config(options.config);
  const auto training = std::make_shared<BenchTraining>(config, config.dropout, options.seed);
  const auto neighbour = std::make_shared<std::optional<Neighbour>>();
  const auto with = [=, steps = options.steps](i64 threads) {
    return Work{.run = [=] { make_steps(*training, threads, steps); },
                .prepare =
                    [=] {
                      neighbour->reset();
                      if (beside == Beside::program) neighbour->emplace(compute);
                      if (beside == Beside::training)
                        neighbour->emplace([=] { make_steps(*training, threads, steps); });
                      make_steps(*training, threads, warm_up_steps);
                    }};
  };
  return {.own = with(options.threads), .rival = with(1)};
}

std::vector<Entry> busy_entries(const BenchOptions& options) {
  std::vector<Entry> entries;
  const auto add_entry = [&](const std::string& name, Beside beside, double most) {
    entries.push_back({.name = options.config + " beside " + name,
                       .trial = [=] { return steps_beside(beside, options); },
                       .calls = 1 / static_cast<double>(options.steps),
                       .most = most});
  };
  add_entry("nothing", Beside::nothing, 0);
  add_entry("a program that computes", Beside::program, 1.05);
  add_entry("a second training", Beside::training, 1.05);
  return entries;
}

}  // namespace

MicroBench busy_bench() {
  return {.name = "busy",
          .what = "The time of a training step beside other programs",
          .help =
              "Starts the other programs itself: one that computes, and then a second training. Beside them a step "
              "with all threads may take as long as a step with one, and no longer. Nothing else should run "
              "meanwhile.\nExample:\n  orrery bench busy --threads 2",
          .entries = busy_entries,
          .add_options =
              [](CLI::App& command, BenchOptions& options) {
                options.config = "toy";
                options.steps = 200;
                add_choice(command, "--config", options.config, bench_config_names(), "Model and batch");
                add_whole_number(command, "--steps", options.steps, 1, 1000000, "Steps of each of five measurements");
                add_seed(command, options.seed);
              },
          .time = "ms a step",
          .rival = "one thread",
          .ratio = "share",
          .time_unit = 1e-3,
          .turns = [](const BenchOptions&) { return i64{5}; }};
}

}  // namespace orrery
