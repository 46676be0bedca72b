// Chapter 9. Steps that take turns: plain, watched, and full of denormal numbers.
#include "apps/measure/bench/promises.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/training.h"
#include "apps/program/columns.h"
#include "apps/program/stopwatch.h"
#include "apps/training/training_step.h"
#include "autograd/observer.h"
#include "autograd/saved.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr double version_bound = 0.005, watch_bound = 0.01, denormal_bound = 0.05;
// A dL/d(loss) that puts the gradients of a step on both sides of 1.2e-38, the smallest normal number of f32.
constexpr double tiny_dy = 1e-34;

// Seconds of the steps of each kind, which take turns.
struct PairedSteps {
  std::vector<double> plain, other;

  template <class Plain, class Other>
  PairedSteps(i64 count, const Plain& plain_step, const Other& other_step) {
    for (i64 i = -warm_up_steps; i < count; ++i) {
      double plain_seconds = 0;
      const bool plain_first = i % 2 == 0;
      if (plain_first) plain_seconds = plain_step();
      const double other_seconds = other_step();
      if (!plain_first) plain_seconds = plain_step();
      if (i >= 0) {
        plain.push_back(plain_seconds);
        other.push_back(other_seconds);
      }
    }
  }
  // The median of the extra time of the other step, as a fraction of the plain one.
  double cost() const {
    std::vector<double> ratios;
    for (size_t i = 0; i < plain.size(); ++i) ratios.push_back(other[i] / plain[i]);
    return median(ratios) - 1;
  }
};

// Two trainings of the same kind.
struct Pair {
  BenchTraining plain, other;
  Pair(const BenchConfig& config, const BenchOptions& options)
      : plain(config, config.dropout_or_own(options.dropout), options.seed),
        other(config, config.dropout_or_own(options.dropout), options.seed) {}
};

// Steps with and without a check of the loss and the norm. Both change the parameters in the same way, so one training
// makes both. If nothing is clipped, the plain step does not compute the norm.
PairedSteps watched_steps(const BenchConfig& config, const BenchOptions& options, bool clipped) {
  BenchTraining training(config, config.dropout_or_own(options.dropout), options.seed);
  const auto plain = [&] {
    return seconds_of([&] {
      training.pass();
      if (clipped)
        training.update();
      else
        training.optimizer().step(bench_learning_rate);
    });
  };
  const auto watched = [&] {
    return seconds_of([&] {
      const double loss = training.pass();
      make_step({.program = "bench", .number = 1, .rate = bench_learning_rate, .clip = clipped ? bench_max_norm : 0},
                loss, training.optimizer(), [&] { return training.loss(); });
    });
  };
  return PairedSteps(options.steps, plain, watched);
}

// The gradients of the other training are multiplied by `dy`. Before each of its steps, `prepare` is called,
// unmeasured.
template <class Prepare>
PairedSteps steps_with(Pair& pair, const BenchOptions& options, double dy, const Prepare& prepare) {
  const auto plain = [&] { return seconds_of([&] { pair.plain.step(); }); };
  const auto other = [&] {
    prepare();
    return seconds_of([&] {
      pair.other.pass(dy);
      pair.other.update();
    });
  };
  return PairedSteps(options.steps, plain, other);
}

PairedSteps denormal_weight_steps(const BenchConfig& config, const BenchOptions& options) {
  Pair pair(config, options);
  Rng rng(static_cast<u64>(options.seed));
  Parameters parameters = pair.other.optimizer().parameters();
  std::vector<Tensor> denormal;
  for (const NamedParameter& p : parameters) {
    denormal.push_back(Tensor::empty(p.value.shape()));
    make_denormal(denormal.back(), rng);
  }
  return steps_with(pair, options, tiny_dy, [&] {  // denormal weights are read as zero, so a step leaves zeros behind
    for (size_t i = 0; i < parameters.size(); ++i) copy_into(parameters[i].value.mutable_value(), denormal[i]);
  });
}

PairedSteps tiny_gradient_steps(const BenchConfig& config, const BenchOptions& options) {
  Pair pair(config, options);
  return steps_with(pair, options, tiny_dy, [] {});
}

// Counts the operations that a pass records.
class OperationCounter final : public Observer {
 public:
  void backward_ended(const Node& node) override { count += dynamic_cast<const Leaf*>(&node) == nullptr; }
  i64 count = 0;
};

i64 operations_of_step(const BenchConfig& config, const BenchOptions& options) {
  BenchTraining training(config, config.dropout_or_own(options.dropout), options.seed);
  OperationCounter counter;
  const ObserverScope scope(counter);
  training.pass();
  return counter.count;
}

}  // namespace

double seconds_of_version() {
  constexpr i64 count = 100'000;
  Tensor tensor = full({1}, 1.0);
  double sum = 0;
  const double seconds = fastest_seconds(0.05, [&] {
    for (i64 i = 0; i < count; ++i) {
      *tensor.write<float>() += 1;
      const Saved saved(tensor);
      for (i64 use = 0; use < most_uses; ++use) sum += *saved.get().data<float>();
    }
  });
  check(sum > 0, "bench promises", "nothing was saved");  // and `sum` is used, so no compiler leaves the loop out
  return seconds / static_cast<double>(count);
}

void make_denormal(Tensor& weight, Rng& rng) {
  constexpr i64 smallest_normal = i64{1} << 23, sign = i64{1} << 31;  // as bits
  float* w = weight.write<float>();
  for (i64 i = 0; i < weight.count(); ++i) {
    const i64 bits = rng.integer(1, smallest_normal) + (rng.integer(0, 2) == 1 ? sign : 0);
    w[i] = std::bit_cast<float>(static_cast<u32>(bits));
  }
}

PromiseFigures measure_promises(const BenchConfig& config, const BenchOptions& options) {
  const PairedSteps watched = watched_steps(config, options, true), unclipped = watched_steps(config, options, false);
  PromiseFigures figures{.config = config.name,
                         .step = median(watched.plain),
                         .operations = operations_of_step(config, options),
                         .seconds_of_saved = seconds_of_version(),
                         .costs = {}};
  const double versions = static_cast<double>(figures.operations * most_saved) * figures.seconds_of_saved;
  figures.costs = {
      {11, "versions of saved tensors, at most", versions / figures.step, version_bound},
      {12, "the first-NaN watch", watched.cost(), watch_bound},
      {12, "the same, gradients not clipped", unclipped.cost(), watch_bound},
      {15, "denormal weights, gradients around 1e-38", denormal_weight_steps(config, options).cost(), denormal_bound},
      {15, "gradients around 1e-38", tiny_gradient_steps(config, options).cost(), denormal_bound}};
  return figures;
}

void print_promises(std::ostream& out, const PromiseFigures& figures) {
  constexpr size_t what_width = 44;
  out << figures.config
      << numbers(": a plain step takes %.2f ms and records %ld operations, a saved tensor's version takes %.1f ns\n",
                 1e3 * figures.step, figures.operations, 1e9 * figures.seconds_of_saved)
      << "promise  " << fitted("a step with", what_width) << "    costs     bound\n";
  for (const PromiseCost& row : figures.costs) {
    out << numbers("%7ld  ", row.promise) << fitted(row.what, what_width)
        << numbers("%+7.2f %%%8.2f %%", 1e2 * row.cost, 1e2 * row.bound) << (row.kept() ? "\n" : "  MISSED\n");
  }
  out << std::flush;
}

int bench_promises(const BenchOptions& options) {
  const BenchConfig config = scaled(bench_config(options.config), options.batch, options.length, options.width);
  announce(options);
  const PromiseFigures figures = measure_promises(config, options);
  print_promises(std::cout, figures);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const PromiseCost& row : figures.costs)
    rows.push_back({{"promise", row.promise}, {"what", row.what}, {"cost", row.cost}, {"bound", row.bound}});
  write_results(options, "promises",
                {{"config", figures.config},
                 {"steps", options.steps},
                 {"step_ms", 1e3 * figures.step},
                 {"operations", figures.operations},
                 {"saved_ns", 1e9 * figures.seconds_of_saved},
                 {"costs", rows}});
  return exit_code_of(figures.costs);
}

}  // namespace orrery
