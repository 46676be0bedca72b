// Chapter 9. Claims about positions: what is lost without them, and what they do beyond the trained length.
#include <cmath>

#include "apps/measure/claims/training.h"
#include "apps/program/columns.h"
#include "core/tensor_ops.h"

namespace orrery::claims {
namespace {

constexpr i64 symbols = 8, trained_length = 16;

// A model that has learned, from sequences of 16 tokens, to name the token before each one.
SequenceModel trained(Order order, const Mask& mask, const TrainingPlan& plan, u64 seed, const Run& run) {
  Rng rng(seed);
  SequenceModel model({.symbols = symbols, .max_len = 2 * trained_length, .order = order, .mask = mask}, rng);
  train(model, earlier_token(symbols, 1), plan, seed, run);
  return model;
}

// Its accuracy on 200 new sequences, at positions [first, limit).
double accuracy_at(const SequenceModel& model, i64 first, i64 limit, u64 seed) {
  Rng rng(seed, exam_numbers);
  Lesson lesson = earlier_token(symbols, 1)(200, limit, rng);
  if (first > 0) slice_into(lesson.labels, full({200, first}, ignored, Dtype::i32), 1, 0, false);
  return examine(model, lesson).accuracy;
}

Finding extrapolation(Order order, const Run& run) {
  const auto both = for_each_seed([&](u64 seed) {
    const SequenceModel model = trained(order, Mask::causal(), {.steps = 400}, seed, run);
    return std::pair(accuracy_at(model, 0, trained_length, seed),
                     accuracy_at(model, trained_length, 2 * trained_length, seed));
  });
  std::vector<double> within, beyond;
  for (const auto& [a, b] : both) {
    within.push_back(a);
    beyond.push_back(b);
  }
  Finding finding{.measured = {"trained on 16 tokens, to name the token before; accuracy for 3 seeds (a guess: 0.125)",
                               for_seeds("positions  0 to 15:", within), for_seeds("positions 16 to 31:", beyond)}};
  check(least(within) > 0.95, "claims", "a model did not learn its task within the trained length");
  finding.verdict = verdict_of(most(beyond) > 0.5, least(beyond) > 0.8);
  return finding;
}

}  // namespace

Finding order_needs_positions(const Run& run) {
  const TrainingPlan plan{.steps = 400, .rate = 6e-3};
  const auto accuracies = [&](Order order, const Mask& mask) {
    return for_each_seed(
        [&](u64 seed) { return accuracy_at(trained(order, mask, plan, seed, run), 0, trained_length, seed); });
  };
  const auto with = accuracies(Order::sinusoidal, Mask()), without = accuracies(Order::none, Mask()),
             causal = accuracies(Order::none, Mask::causal());
  Finding finding{.measured = {"to name the token before each one; accuracy for seeds 1, 2, 3 (a guess: 0.125)",
                               for_seeds("encoder, sinusoidal positions:", with),
                               for_seeds("encoder, no positions:        ", without),
                               for_seeds("causal mask, no positions:    ", causal)}};
  const bool encoder_needs = least(with) > 0.95 && most(without) < 0.5, decoder_needs = most(causal) < 0.5;
  finding.verdict = verdict_of(encoder_needs, decoder_needs);
  return finding;
}

Finding learned_equals_sinusoidal(const Run& run) {
  Finding finding{.measured = {"to name the token before each one; accuracy for seeds 1, 2, 3 (a guess: 0.125)"}};
  std::vector<double> differences;
  for (const i64 steps : {100, 400}) {
    std::vector<double> accuracies[2];
    for (const Order order : {Order::sinusoidal, Order::learned}) {
      accuracies[order == Order::learned] = for_each_seed([&](u64 seed) {
        return accuracy_at(trained(order, Mask::causal(), {.steps = steps}, seed, run), 0, trained_length, seed);
      });
      finding.measured.push_back(for_seeds(
          numbers("%d steps, %s", static_cast<int>(steps), order == Order::learned ? "learned:   " : "sinusoidal:"),
          accuracies[order == Order::learned]));
    }
    double difference = 0;
    for (size_t i = 0; i < std::size(seeds); ++i)
      difference = std::max(difference, std::abs(accuracies[0][i] - accuracies[1][i]));
    differences.push_back(difference);
  }
  const bool late = differences[1] < 0.05, early = differences[0] < 0.05;
  finding.verdict = verdict_of(late, early);
  return finding;
}

Finding sinusoidal_extrapolates(const Run& run) { return extrapolation(Order::sinusoidal, run); }
// The claim is that they do not.
Finding learned_do_not_extrapolate(const Run& run) {
  Finding finding = extrapolation(Order::learned, run);
  if (finding.verdict != Verdict::partly) finding.verdict = verdict_of(finding.verdict == Verdict::does_not_hold);
  return finding;
}

}  // namespace orrery::claims
