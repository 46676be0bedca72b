// Chapter 11. `orrery bench ranks`: how long ranks take to join the gradients of a step, and what that foretells.
//
// Each rank sends and receives 2 (R - 1) / R times the bytes of a gradient, whatever R is, and the messages of all are
// under way at once. So with P parameters in f32
//   t(R) = latency + 8 P (R - 1) / R / bandwidth
// where every rank has a connection of its own. Latency and bandwidth are fitted to what the first two ranks take by
// themselves. What more ranks take is foretold, and compared with what as many take as mpirun has started.
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/training.h"
#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/training/gradient_tree.h"
#include "apps/training/run.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// The first ranks of some, by themselves. The others call nothing meanwhile.
class FirstRanks final : public Ranks {
 public:
  FirstRanks(Ranks& all, i64 size) : all_(all), size_(size) {}
  i64 rank() const override { return all_.rank(); }
  i64 size() const override { return size_; }
  void exchange(const Sent& to, const Received& from) override { all_.exchange(for_all(to), for_all(from)); }
  std::unique_ptr<Transfer> start(int channel, const Sent& to, const Received& from) override {
    return all_.start(channel, for_all(to), for_all(from));
  }

 private:
  template <class Spans> Spans for_all(Spans spans) const {
    spans.resize(static_cast<size_t>(all_.size()));
    return spans;
  }
  Ranks& all_;
  i64 size_;
};

// Seconds of work that all ranks begin together, until the last one is done: the median of some trials.
double seconds_on(Ranks& ranks, i64 trials, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (i64 i = -1; i < trials; ++i) {  // the first trial does not count
    ranks.any(false);
    const std::vector<double> each = ranks.each(seconds_of(work));
    if (i >= 0) seconds.push_back(*std::max_element(each.begin(), each.end()));
  }
  return median(seconds);
}

// Seconds to join gradients that the parameters have, of a micro-batch on each rank.
double seconds_to_join(Ranks& ranks, const Parameters& parameters, i64 trials) {
  return seconds_on(ranks, trials, [&] {
    GradientTree tree(parameters, ranks.size());
    tree.take(ranks.rank());
    tree.finish(ranks);
  });
}

struct JoinedModel {
  std::string model;
  i64 parameters = 0, tokens = 0;
  double step = 0, of_two = 0, of_all = 0, allreduce = 0;  // seconds
};

// Rows for the models. A gradient of another size says more about latency.
std::vector<JoinedModel> measure_joining(Ranks& ranks, const BenchOptions& options,
                                         std::vector<std::pair<i64, double>>& of_two) {
  FirstRanks two(ranks, 2);
  const auto by_two = [&](const std::function<void()>& work) {
    try {
      if (ranks.rank() < 2) work();
    } catch (...) {  // the others wait for these two alone
      ranks.end_all(ranks.name_of(ranks.rank()) + ": " + message_of(std::current_exception()));
    }
    ranks.meet(1e9);  // without keeping cores busy
  };
  constexpr i64 sizes[] = {1 << 6, 1 << 18, 1 << 20, 1 << 22, 1 << 23};
  for (const i64 count : sizes)
    by_two([&] {
      Variable p = parameter(zeros({count}));
      p.mutable_gradient() = zeros({count});
      of_two.emplace_back(count, seconds_to_join(two, {{"p", p}}, 2 * options.steps));
    });
  std::vector<JoinedModel> rows;
  const std::vector<std::string> chosen(1, options.config), three{"toy", "gpt-mid", "gpt2"};
  for (const std::string& name : options.config.empty() ? three : chosen) {
    const BenchConfig& config = bench_config(name);
    BenchTraining training(config, config.dropout, options.seed);
    JoinedModel row{.model = name, .parameters = training.parameter_count(), .tokens = config.tokens_per_step()};
    const Parameters& parameters = training.optimizer().parameters();
    by_two([&] {
      row.step = seconds_on(two, options.steps, [&] { training.step(); });
      training.pass();
      row.of_two = seconds_to_join(two, parameters, options.steps);
      of_two.emplace_back(row.parameters, row.of_two);
    });
    for (const NamedParameter& p : parameters) Variable(p.value).mutable_gradient() = zeros(p.value.shape());
    row.of_all = seconds_to_join(ranks, parameters, options.steps);
    Tensor numbers = zeros({row.parameters});
    row.allreduce = seconds_on(ranks, options.steps, [&] { ranks.sum(numbers); });
    rows.push_back(row);
  }
  return rows;
}

std::string milliseconds(double seconds) { return numbers(seconds < 0.1 ? "%9.2f" : "%9.0f", 1e3 * seconds); }

void print_joining(const std::vector<JoinedModel>& rows, const JoiningTime& time, i64 size) {
  std::cout << "joining, ms       numbers  2 ranks   fitted ";
  if (size > 2) std::cout << numbers("%2ld ranks  foretold ", size);
  std::cout << "Allreduce   foretold for 8       64      256\n";
  for (const JoinedModel& row : rows) {
    std::cout << fitted(row.model, 10) << numbers("%15ld", row.parameters) << milliseconds(row.of_two)
              << milliseconds(time.of(row.parameters, 2)) << ' ';
    if (size > 2) std::cout << milliseconds(row.of_all) << ' ' << milliseconds(time.of(row.parameters, size)) << ' ';
    std::cout << milliseconds(row.allreduce) << "      ";
    for (const i64 r : {8, 64, 256}) std::cout << milliseconds(time.of(row.parameters, r));
    std::cout << '\n';
  }
  std::cout
      << "\nmodel      tokens of a rank   step ms   joined by 2   tokens so that 256 ranks compute for 4/5 of a step\n";
  for (const JoinedModel& row : rows) {
    const double of_token = row.step / static_cast<double>(row.tokens);
    std::cout << fitted(row.model, 10) << numbers("%17ld", row.tokens) << ' ' << milliseconds(row.step)
              << numbers("%12.0f %%", 100 * row.of_two / (row.step + row.of_two))
              << numbers("%14.0f\n", 4 * time.of(row.parameters, 256) / of_token);
  }
  std::cout << "\nt(R) = latency + 8 P (R - 1) / R / bandwidth, P numbers, R ranks; of two ranks: latency "
            << numbers("%.3f ms, bandwidth %.0f MB/s", 1e3 * time.latency, 1e-6 * time.bandwidth) << std::endl;
}

}  // namespace

double JoiningTime::of(i64 parameters, i64 ranks) const {
  const auto r = static_cast<double>(ranks);
  return latency + 8 * static_cast<double>(parameters) * (r - 1) / r / bandwidth;
}

// Least squares of L + x / B over t - 1, with x = 4 P bytes for two ranks: a straight line through the points
// (x / t, 1 / t).
JoiningTime fitted_to_two(const std::vector<std::pair<i64, double>>& measured) {
  double ll = 0, lx = 0, xx = 0, l = 0, x = 0;
  for (const auto& [parameters, seconds] : measured) {
    const double one = 1 / seconds, bytes = 4 * static_cast<double>(parameters) / seconds;
    ll += one * one;
    lx += one * bytes;
    xx += bytes * bytes;
    l += one;
    x += bytes;
  }
  const double determinant = ll * xx - lx * lx, slope = ll * x - lx * l;
  check(determinant > 0, "bench ranks", "two sizes at least are needed to fit latency and bandwidth");
  check(slope > 0, "bench ranks", "larger gradients took no longer: measure again, with more --steps");
  return {.latency = std::max(0.0, (l * xx - x * lx) / determinant), .bandwidth = determinant / slope};
}

int bench_ranks(const BenchOptions& options) {
  const std::unique_ptr<Ranks> ranks = mpi_ranks();
  try {
    check(ranks->size() > 1, "bench ranks", "needs at least two ranks: mpirun -np 2 orrery bench ranks");
    if (ranks->is_first()) announce(options);
    std::vector<std::pair<i64, double>> of_two;
    const std::vector<JoinedModel> rows = measure_joining(*ranks, options, of_two);
    if (!ranks->is_first()) return done;
    ranks->others_end();
    const JoiningTime time = fitted_to_two(of_two);
    print_joining(rows, time, ranks->size());
    nlohmann::ordered_json results = {{"ranks", ranks->size()},
                                      {"latency_ms", 1e3 * time.latency},
                                      {"bandwidth", time.bandwidth},
                                      {"two_ranks", of_two}};
    for (const JoinedModel& row : rows)
      results["models"][row.model] = {{"parameters", row.parameters},
                                      {"step_ms", 1e3 * row.step},
                                      {"joining_ms", 1e3 * row.of_all},
                                      {"allreduce_ms", 1e3 * row.allreduce}};
    write_results(options, "ranks", results);
  } catch (...) {
    ranks->failed(message_of(std::current_exception()));
    if (ranks->is_first()) throw;
  }
  return done;
}

}  // namespace orrery
