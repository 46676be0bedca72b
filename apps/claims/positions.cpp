// Chapter 9. Claims about positions: what is lost without them, and what they do beyond the trained length.
//
// Serves: nn/positions/positional_encoding.h
#include <cmath>

#include "apps/claims/measures.h"
#include "apps/claims/training.h"
#include "apps/program/columns.h"
#include "autograd/check/rounding.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/layout.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "core/tensor_ops.h"

namespace orrery::claims {
namespace {

// x [1, T, d_model] with its positions in another order: position t gets row order[t].
Tensor reordered(const Tensor& x, const std::vector<i64>& order) {
  std::vector<Tensor> rows;
  for (const i64 t : order) rows.push_back(slice(x, 1, t, t + 1));
  return concat(std::span<const Tensor>(rows), 1);
}

// |f(P x) - P f(x)| at its largest, where f adds `positions` (perhaps 0) and applies two layers of an encoder.
double change_by_order(const Tensor& positions, const Mask& mask) {
  const std::vector<i64> order{3, 0, 5, 1, 4, 2};
  Rng rng(1);
  nn::Encoder encoder(2, false, {.d_model = 16, .num_heads = 2, .d_ff = 32}, rng);
  nn::to(encoder, f64);
  const auto f = [&](const Tensor& x) {
    nn::Pass pass = nn::Pass::inference();
    return encoder(constant(x + positions), mask, pass).value();
  };
  const Tensor x = randn({1, 6, 16}, rng, f64);
  return largest_magnitude({f(reordered(x, order)) - reordered(f(x), order)});
}

// Orthonormal rows that span what the columns of x [n, d] span, by Gram-Schmidt. Each is cleared of those before it
// three times: columns of low frequencies are so much alike that what one pass leaves is mostly rounding.
Tensor orthonormal(const Tensor& x) {
  Tensor rows = permute(x, {1, 0});
  for (i64 i = 0; i < rows.size(0); ++i) {
    Tensor row = rows.rows(i, i + 1);
    for (int pass = 0; pass < 3 && i > 0; ++pass) {
      const Tensor others = rows.rows(0, i);
      row = row - matmul(matmul(row, others, Trans::b), others);
    }
    slice_into(rows, row * (1 / std::sqrt(dot(row, row))), 0, i, false);
  }
  return rows;
}

constexpr i64 fitted_positions = 500;

// The largest number in PE(p + k) - M PE(p), for the M that makes the sum of their squares least. What M PE(p) can
// reach is spanned by the columns of the table, so the best M leaves of PE(p + k) what is orthogonal to them.
double error_of_best_matrix(const Tensor& table, i64 k) {
  const Tensor reachable = orthonormal(table.rows(0, fitted_positions));
  const Tensor shifted = table.rows(k, fitted_positions + k);
  return largest_magnitude({shifted - matmul(reachable, matmul(reachable, shifted), Trans::a)});
}

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

Finding equivariance(const Run&) {
  const Tensor none = zeros({1, 6, 16}, f64), table = nn::sinusoidal_table(6, 16).reshape({1, 6, 16});
  const double without = change_by_order(none, Mask()), with = change_by_order(table, Mask()),
               causal = change_by_order(none, Mask::causal());
  return {.verdict = verdict_of(without < 1e-12 && with > 0.01 && causal > 0.01),
          .measured = {"largest |f(P x) - P f(x)| of two encoder layers, for 6 vectors in another order P",
                       numbers("no positions, every key allowed  %.1e", without),
                       numbers("sinusoidal positions added       %.1e", with),
                       numbers("no positions, a causal mask      %.1e", causal)}};
}

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

Finding shift_is_linear(const Run&) {
  constexpr i64 d_model = 64;
  Rng rng(1);
  const Tensor sinusoidal = nn::sinusoidal_table(fitted_positions + 100, d_model);
  const Tensor random = randn({fitted_positions + 100, d_model}, rng, f64);
  Finding finding{.measured = {"largest |PE(p + k) - M PE(p)| over p = 0 to 499, d_model = 64; M is the matrix that",
                               "fits best, by least squares, for this k and this table",
                               "  k     sinusoidal     random vectors"}};
  bool all = true;
  for (const i64 k : {1, 10, 100}) {
    const double of_sinusoids = error_of_best_matrix(sinusoidal, k), of_random = error_of_best_matrix(random, k);
    finding.measured.push_back(numbers("%3d %14.1e %18.1e", static_cast<int>(k), of_sinusoids, of_random));
    all = all && of_sinusoids < 1e-10 && of_random > 0.1;
  }
  finding.verdict = verdict_of(all);
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
Finding distances_extrapolate(const Run& run) { return extrapolation(Order::distance, run); }

}  // namespace orrery::claims
