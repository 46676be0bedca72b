// Chapter 9. `orrery bench promises`: what three promises of tests/promises/README.md cost a training step.
//
//   11  using a saved tensor that was changed is an error: each write counts a version, each save notes it, each use
//       compares it
//   12  the first NaN is named: the loss and the norm of the gradients are checked before each step
//   15  denormal numbers cost nothing: every thread treats them as zero
// Method for 12 and 15: plain steps and steps that differ only in the promise take turns.
// Method for 11: it cannot be switched off, so its work is timed alone: that for one tensor (a write, a save, and
// `most_uses` uses), for as many tensors as the operations of a step could save (`most_saved` each), beside a plain
// step. This is an upper limit.
#include <bit>
#include <memory>

#include "apps/measure/bench/micro.h"
#include "apps/measure/bench/training.h"
#include "apps/training/trainer.h"
#include "autograd/leaf.h"
#include "autograd/observer.h"
#include "autograd/saved.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

// A dL/d(loss) that puts the gradients of a step on both sides of 1.2e-38, the smallest normal number of f32.
constexpr double tiny_dy = 1e-34;

BenchConfig promises_config(const BenchOptions& options) {
  return scaled(bench_config(options.config), options.batch, options.length, options.width);
}

std::shared_ptr<BenchTraining> new_training(const BenchOptions& options) {
  const BenchConfig config = promises_config(options);
  auto training = std::make_shared<BenchTraining>(config, config.dropout_or_own(options.dropout), options.seed);
  for (int i = 0; i < warm_up_steps; ++i) training->step();
  return training;
}

// Counts the operations that a pass records.
class OperationCounter final : public Observer {
 public:
  void backward_ended(const Node& node) override { count += dynamic_cast<const Leaf*>(&node) == nullptr; }
  i64 count = 0;
};

// Everything that is done for the versions of `tensors` tensors.
void keep_versions(i64 tensors) {
  Tensor tensor = full({1}, 1.0);
  double sum = 0;
  for (i64 i = 0; i < tensors; ++i) {
    *tensor.write<float>() += 1;
    const Saved saved(tensor);
    for (i64 use = 0; use < most_uses; ++use) sum += *saved.get().data<float>();
  }
  check(sum > 0, "bench promises", "nothing was saved");  // and `sum` is used, so no compiler leaves the loop out
}

Trial versions(const BenchOptions& options) {
  const auto training = new_training(options);
  OperationCounter counter;
  {
    const ObserverScope scope(counter);
    training->pass();
  }
  return {.own = {.run = [tensors = counter.count * most_saved] { keep_versions(tensors); }},
          .rival = Work{.run = [training] { training->step(); }},
          .besides = {{"operations", static_cast<double>(counter.count)}}};
}

// Steps with and without a check of the loss and the norm. Both change the parameters in the same way, so one training
// makes both. If nothing is clipped, the plain step does not compute the norm.
Trial watched(const BenchOptions& options, bool clipped) {
  const auto training = new_training(options);
  const auto plain = [=] {
    training->pass();
    if (clipped)
      training->update();
    else
      training->optimizer().step(bench_learning_rate);
  };
  const auto with_watch = [=] {
    const double loss = training->pass();
    make_step({.program = "bench", .number = 1, .rate = bench_learning_rate, .clip = clipped ? bench_max_norm : 0},
              loss, training->optimizer(), [&] { return training->loss(); });
  };
  return {.own = {.run = with_watch}, .rival = Work{.run = plain}};
}

// Gradients of about 1e-38, also in denormal weights.
Trial denormal(const BenchOptions& options, bool weights_too) {
  const auto plain = new_training(options), other = new_training(options);
  Rng rng(static_cast<u64>(options.seed));
  std::vector<std::pair<Variable, Tensor>> weights;
  for (const NamedParameter& p : other->optimizer().parameters()) {
    if (!weights_too) break;
    weights.emplace_back(p.value, Tensor::empty(p.value.shape()));
    make_denormal(weights.back().second, rng);
  }
  return {.own = {.run =
                      [other] {
                        other->pass(tiny_dy);
                        other->update();
                      },
                  .prepare =
                      [weights] {  // denormal weights are read as zero, so a step leaves zeros behind
                        for (auto [parameter, start] : weights) copy_into(parameter.mutable_value(), start);
                      }},
          .rival = Work{.run = [plain] { plain->step(); }}};
}

std::vector<Entry> promises_entries(const BenchOptions& options) {
  promises_config(options);  // wrong usage is said first
  const auto entry = [&](const std::string& name, double most, const std::function<Trial(const BenchOptions&)>& trial) {
    return Entry{.name = name, .trial = [=] { return trial(options); }, .most = most};
  };
  using Options = const BenchOptions&;
  return {
      entry("11 versions of saved tensors, at most", 0.005, versions),
      entry("12 the first-NaN watch", 1.01, [](Options o) { return watched(o, true); }),
      entry("12 the same, gradients not clipped", 1.01, [](Options o) { return watched(o, false); }),
      entry("15 denormal weights, gradients around 1e-38", 1.05, [](Options o) { return denormal(o, true); }),
      entry("15 gradients around 1e-38", 1.05, [](Options o) { return denormal(o, false); }),
  };
}

}  // namespace

void make_denormal(Tensor& weight, Rng& rng) {
  constexpr i64 smallest_normal = i64{1} << 23, sign = i64{1} << 31;  // as bits
  float* w = weight.write<float>();
  for (i64 i = 0; i < weight.count(); ++i) {
    const i64 bits = rng.integer(1, smallest_normal) + (rng.integer(0, 2) == 1 ? sign : 0);
    w[i] = std::bit_cast<float>(static_cast<u32>(bits));
  }
}

MicroBench promises_bench() {
  return {.name = "promises",
          .what = "What promises cost a training step: versions, the first-NaN watch, denormals",
          .help =
              "Steps with and without take turns. The versions of saved tensors cannot be switched off: the time "
              "for one tensor is multiplied by the largest number of tensors that a step may save.\nExample:\n"
              "  orrery bench promises --config tiny-mt --steps 20",
          .entries = promises_entries,
          .add_options =
              [](CLI::App& command, BenchOptions& options) {
                options.steps = 300;
                add_step_options(command, options);
              },
          .time = "ms",
          .rival = "plain",
          .ratio = "share",
          .time_unit = 1e-3,
          .turns = steps_of};
}

}  // namespace orrery
