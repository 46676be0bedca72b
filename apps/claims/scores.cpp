// Chapter 9. Claims about dot products: their variance, the division by sqrt(d_k), and softmax where it saturates.
//
// Serves: nn/attention/attention.h
#include <cmath>

#include "apps/claims/measures.h"
#include "apps/claims/training.h"
#include "apps/program/columns.h"
#include "apps/program/stopwatch.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/attention.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "core/tensor_ops.h"

namespace orrery::claims {
namespace {

struct Moments {
  double mean = 0, variance = 0;
};

// Of the products q.k of 2000 pairs whose components are independent draws from N(0, 1).
Moments moments_of_dot_products(i64 d_k) {
  constexpr i64 pairs = 2000;
  Rng rng(1);
  const Tensor q = randn({pairs, d_k}, rng, f64), k = randn({pairs, d_k}, rng, f64);
  const Tensor products = sum(q * k, {-1});
  const double mean = orrery::mean(products).item();
  const Tensor centred = products - full({1}, mean, f64);
  return {.mean = mean, .variance = orrery::mean(centred * centred).item()};
}

// Of the scores of a layer with Xavier's weights, for inputs of variance 1. Xavier draws smaller numbers for a matrix
// with more outputs. So those of one packed matrix, W^Q above W^K above W^V, are smaller than those of W^Q by itself.
double variance_at_the_start(bool packed) {
  constexpr i64 n = 400, d_model = 512, h = 8, d_k = d_model / h;
  Rng rng(3);
  const nn::MultiHeadAttention attention(d_model, h, rng);
  const nn::Linear W_Q(d_model, d_model, rng, {.bias = false}), W_K(d_model, d_model, rng, {.bias = false});
  const Variable x = constant(randn({1, n, d_model}, rng));
  const NoGradient no_gradient;
  double variance = 0;
  for (i64 row = 0; row < d_model; row += d_k) {
    const Variable Q = packed ? attention.in_proj(x, {row, row + d_k}) : W_Q(x, {row, row + d_k});
    const Variable K = packed ? attention.in_proj(x, {d_model + row, d_model + row + d_k}) : W_K(x, {row, row + d_k});
    const Tensor scores = matmul(Q.value(), K.value(), Trans::b) * (1 / std::sqrt(static_cast<double>(d_k)));
    variance += mean(scores * scores).item() / static_cast<double>(h);
  }
  return variance;
}

// What softmax does with the scores of one query and 64 keys: medians over 500 queries.
struct Saturation {
  double largest = 0;  // the largest weight
  double slope = 0;    // the mean over the keys of dweight_j / dscore_j, which is weight_j (1 - weight_j)
};
Saturation saturation_of(i64 d_k, double factor) {
  constexpr i64 queries = 500, keys = 64;
  Rng rng(2);
  const Tensor q = randn({queries, d_k}, rng, f64), k = randn({keys, d_k}, rng, f64);
  const Tensor weights = softmax(constant(matmul(q, k, Trans::b) * factor)).value();
  const Tensor largest = max(weights, {-1}), squares = sum(weights * weights, {-1});
  std::vector<double> all_largest, all_slopes;
  for (i64 i = 0; i < queries; ++i) {
    all_largest.push_back(largest.at(i));
    all_slopes.push_back((1 - squares.at(i)) / static_cast<double>(keys));
  }
  return {.largest = median(all_largest), .slope = median(all_slopes)};
}

// The largest weight of a query that sees at least eight keys: the mean over both layers.
double largest_weight(const SequenceModel& model, const Tensor& ids) {
  const NoGradient no_gradient;
  nn::Pass pass = nn::Pass::inference();
  std::vector<Tensor> weights;
  model(ids, pass, &weights);
  double total = 0;
  for (const Tensor& layer : weights) total += mean(slice(max(layer, {-1}), -1, 7)).item();
  return total / static_cast<double>(weights.size());
}

// A short training to name the token three positions back, with one head of size d_k whose queries and keys start with
// variance about 1/2.
struct TrainedScores {
  double accuracy = 0, largest_before = 0, largest_after = 0;
};
TrainedScores trained_with_scores(i64 d_k, bool scaled, u64 seed, const Run& run) {
  Rng rng(seed);
  SequenceModel model({.symbols = 8,
                       .layer = {.d_model = 32,
                                 .num_heads = 1,
                                 .d_ff = 64,
                                 .d_k = d_k,
                                 .d_v = 32,
                                 .dropout = 0,
                                 .init = nn::Init::pytorch_linear},
                       .max_len = 16,
                       .scaled = scaled},
                      rng);
  const Task task = earlier_token(8, 3);
  Rng exam(seed, exam_numbers);
  const Tensor ids = task(16, 16, exam).ids;
  TrainedScores result{.largest_before = largest_weight(model, ids)};
  result.accuracy = train(model, task, {.steps = 200}, seed, run).accuracy;
  result.largest_after = largest_weight(model, ids);
  return result;
}

}  // namespace

Finding variance_of_dot_products(const Run& run) {
  Finding finding{.measured = {"  d_k     mean of q.k    variance of q.k    variance / d_k"}};
  bool all = true;
  for (const i64 d_k : {4, 16, 64, 256, 1024}) {
    run.go_on();
    const auto [mean, variance] = moments_of_dot_products(d_k);
    const double d = static_cast<double>(d_k);
    finding.measured.push_back(numbers("%5.0f %15.2f %18.1f %17.3f", d, mean, variance, variance / d));
    all = all && std::abs(mean) < 0.1 * std::sqrt(d) && std::abs(variance / d - 1) < 0.15;
  }
  finding.verdict = verdict_of(all);
  return finding;
}

Finding scaled_variance(const Run& run) {
  Finding finding{.measured = {"  d_k     variance of q.k / sqrt(d_k)"}};
  bool all = true;
  for (const i64 d_k : {4, 16, 64, 256, 1024}) {
    run.go_on();
    const double d = static_cast<double>(d_k), variance = moments_of_dot_products(d_k).variance / d;
    finding.measured.push_back(numbers("%5.0f %21.3f", d, variance));
    all = all && std::abs(variance - 1) < 0.15;
  }
  // The claim assumes queries and keys of variance 1. A layer, as it starts, computes them from inputs of variance 1.
  const double apart = variance_at_the_start(false), packed = variance_at_the_start(true);
  finding.measured.push_back("in a layer of width 512 with 8 heads before its first step, by what Xavier draws:");
  finding.measured.push_back(numbers("  W^Q by itself, and W^K by itself       %.2f", apart));
  finding.measured.push_back(
      numbers("  W^Q, W^K and W^V packed in one matrix  %.2f, as PyTorch and this library do", packed));
  const bool begins_so = std::abs(apart - 1) < 0.15 && std::abs(packed - 0.25) < 0.05;  // the book says both
  finding.verdict = verdict_of(all, all && begins_so);
  return finding;
}

Finding softmax_saturation(const Run& run) {
  Finding finding{.measured = {"64 keys, medians over 500 queries; slope: mean of dweight_j / dscore_j",
                               "          scores q.k                    scores q.k / sqrt(d_k)",
                               "  d_k     largest weight     slope     largest weight     slope"}};
  Saturation plain, scaled, first;
  for (const i64 d_k : {1, 16, 256, 1024}) {
    run.go_on();
    plain = saturation_of(d_k, 1);
    scaled = saturation_of(d_k, 1 / std::sqrt(static_cast<double>(d_k)));
    if (d_k == 16) first = scaled;
    finding.measured.push_back(numbers("%5.0f %18.3f %9.0e %18.3f %9.0e", static_cast<double>(d_k), plain.largest,
                                       plain.slope, scaled.largest, scaled.slope));
  }
  const bool saturates = plain.largest > 0.95 && plain.slope < scaled.slope / 10;
  const bool counteracts = scaled.slope > first.slope / 2;
  finding.verdict = verdict_of(saturates, counteracts);
  return finding;
}

Finding missing_scale(const Run& run) {
  Finding finding{.measured = {"for seeds 1, 2, 3: accuracy after 200 steps (a guess: 0.125); the largest weight of a",
                               "query that sees 8 to 16 keys, before the training and after it"}};
  double worst_with = 1, best_without = 0, largest_with = 0, largest_without = 0;
  for (const i64 d_k : {8, 256}) {
    for (const bool scaled : {true, false}) {
      std::vector<double> accuracy, before, after;
      for (const TrainedScores& trained :
           for_each_seed([&](u64 seed) { return trained_with_scores(d_k, scaled, seed, run); })) {
        accuracy.push_back(trained.accuracy);
        before.push_back(trained.largest_before);
        after.push_back(trained.largest_after);
      }
      finding.measured.push_back(for_seeds(
          numbers("d_k = %3d, %s 1/sqrt(d_k):", static_cast<int>(d_k), scaled ? "with   " : "without"), accuracy));
      finding.measured.push_back(for_seeds("  largest weight before:    ", before));
      finding.measured.push_back(for_seeds("                 after:     ", after));
      if (d_k != 256) continue;
      if (scaled) {
        worst_with = least(accuracy);
        largest_with = most(before);
      } else {
        best_without = most(accuracy);
        largest_without = least(before);
      }
    }
  }
  const bool learns_worse = worst_with > best_without + 0.2, saturated = largest_without > 2 * largest_with;
  finding.verdict = verdict_of(learns_worse, learns_worse && saturated);
  return finding;
}

}  // namespace orrery::claims
