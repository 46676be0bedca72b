// Chapter 9. Training steps beside a busy program and beside a second training, alternately with all threads and one.
#include "apps/measure/bench/busy.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/training.h"
#include "apps/program/columns.h"
#include "apps/program/stopwatch.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {

constexpr int rounds = 5;  // of which the median counts

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

// The mean of many steps, since it is chance which of them loses a time slice.
double seconds_of_a_step(BenchTraining& training, i64 threads, i64 steps) {
  set_threads(static_cast<int>(threads));
  for (int i = 0; i < warm_up_steps; ++i) training.step();
  return seconds_of([&] {
           for (i64 i = 0; i < steps; ++i) training.step();
         }) /
         static_cast<double>(steps);
}

}  // namespace

std::vector<BusyRow> measure_busy(const BenchConfig& config, const BenchOptions& options) {
  BenchTraining training(config, config.dropout_or_own(options.dropout), options.seed);
  const auto step = [&](i64 threads) { return seconds_of_a_step(training, threads, options.steps); };
  // A second training uses as many threads as the one that is measured.
  const auto beside_training = [&](i64 threads) {
    const Neighbour neighbour([&] { seconds_of_a_step(training, threads, options.steps); });
    return step(threads);
  };
  const auto beside_program = [&](i64 threads) {
    const Neighbour neighbour(compute);
    return step(threads);
  };
  const auto row = [&](const std::string& beside, bool bounded, const std::function<double(i64)>& measure) {
    std::vector<double> all, one;
    for (int round = 0; round < rounds; ++round) {
      all.push_back(measure(options.threads));
      one.push_back(measure(1));
    }
    return BusyRow{beside, median(all), median(one), bounded};
  };
  return {row("nothing", false, step), row("a program that computes", true, beside_program),
          row("a second training", true, beside_training)};
}

void print_busy(std::ostream& out, const std::string& config, i64 threads, const std::vector<BusyRow>& rows) {
  constexpr size_t beside_width = 24;
  out << config << ": milliseconds of a step\n"
      << fitted("beside", beside_width) << numbers("%3ld threads    1 thread  ratio\n", threads);
  for (const BusyRow& row : rows) {
    out << fitted(row.beside, beside_width)
        << numbers("%11.2f %11.2f %6.3f", 1e3 * row.all, 1e3 * row.one, row.all / row.one)
        << (row.kept() ? "\n" : "  MISSED\n");
  }
  out << std::flush;
}

int bench_busy(const BenchOptions& options) {
  announce(options);
  const BenchConfig config = bench_config(options.config);
  const std::vector<BusyRow> rows = measure_busy(config, options);
  set_threads(static_cast<int>(options.threads));  // the last measurement used one; the file names those asked for
  print_busy(std::cout, config.name, options.threads, rows);
  nlohmann::ordered_json kept_rows = nlohmann::ordered_json::array();
  for (const BusyRow& row : rows) {
    kept_rows.push_back({{"beside", row.beside}, {"all_ms", 1e3 * row.all}, {"one_ms", 1e3 * row.one}});
  }
  write_results(options, "busy", {{"config", as_json(config)}, {"steps", options.steps}, {"rows", kept_rows}});
  return exit_code_of(rows);
}

}  // namespace orrery
