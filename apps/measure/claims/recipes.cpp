// Chapter 9. Claims about the paper's model and its training: cost, label smoothing, where to normalise, masks.
#include <algorithm>
#include <cmath>

#include "apps/measure/bench/operation_times.h"
#include "apps/measure/claims/training.h"
#include "apps/program/columns.h"
#include "autograd/ops/cross_entropy.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"

namespace orrery::claims {
namespace {

constexpr i64 letters = 8, line_length = 16;
// How often a language repeats the token before the last: one that is nearly certain, and one with much chance.
constexpr double nearly_certain = 0.95, with_chance = 0.75;

SequenceModelConfig config_of(bool norm_first, i64 num_layers) {
  return {.symbols = letters,
          .layer = {.d_model = 32, .num_heads = 4, .d_ff = 64, .dropout = 0, .norm_first = norm_first},
          .num_layers = num_layers,
          .max_len = line_length};
}

// --- Label smoothing.

// A task that draws from the same 40 sequences again and again.
Task only_forty(const Task& task, u64 seed) {
  Rng rng(seed, u64{3} << 40);
  const Lesson all = task(40, line_length, rng);
  return [all](i64 count, i64 length, Rng& numbers) {
    Lesson lesson{.ids = full({count, length}, 0, Dtype::i32), .labels = full({count, length}, 0, Dtype::i32)};
    for (i64 row = 0; row < count; ++row) {
      const i64 i = numbers.integer(0, all.ids.size(0));
      slice_into(lesson.ids, all.ids.rows(i, i + 1), 0, row, false);
      slice_into(lesson.labels, all.labels.rows(i, i + 1), 0, row, false);
    }
    return lesson;
  };
}

struct Scores {
  std::vector<double> perplexity, accuracy;
};
// On 500 new sequences, for each seed.
Scores scores_with(double smoothing, bool endless, const Run& run) {
  Scores scores;
  for (const u64 seed : seeds) {
    const Task language = noisy_language(letters, nearly_certain);
    Rng weights(seed), exam(seed, exam_numbers);
    SequenceModel model(config_of(false, 2), weights);
    train(model, endless ? language : only_forty(language, seed), {.steps = 300, .smoothing = smoothing}, seed, run);
    const Score score = examine(model, language(500, line_length, exam));
    scores.perplexity.push_back(std::exp(score.loss));
    scores.accuracy.push_back(score.accuracy);
  }
  return scores;
}

// --- Gradients before the first step.

// The norm of dL/dW of the last layer's second feed-forward matrix before the first step, mean of three seeds.
double gradient_of_last_layer(bool norm_first, i64 num_layers) {
  return mean_of(for_each_seed([&](u64 seed) {
    Rng rng(seed);
    SequenceModel model(config_of(norm_first, num_layers), rng);
    const Lesson lesson = earlier_token(letters, 1)(16, line_length, rng);
    nn::Pass pass = nn::Pass::inference();
    backward(cross_entropy(model(lesson.ids, pass), lesson.labels, {.ignore_index = ignored}));
    const Tensor& g = model.encoder.layers.back().feed_forward.linear2.weight.gradient();
    return std::sqrt(dot(g, g));
  }));
}

// --- A flipped mask.

// True and false confused: query i sees exactly the keys that a causal mask hides, those after it.
Mask flipped_causal(i64 length) {
  Tensor allow = zeros({length, length}, Dtype::i32);
  for (i64 i = 0; i < length; ++i)
    for (i64 j = i + 1; j < length; ++j) allow.set(i * length + j, 1);
  return Mask::allow(allow);
}

// The model's score when it writes: nothing follows the token that it must continue.
Score score_when_writing(SequenceModel& model, bool flipped, u64 seed) {
  constexpr i64 length = line_length / 2;
  if (flipped) model.mask = flipped_causal(length);
  Rng rng(seed, exam_numbers);
  Lesson lesson = noisy_language(letters, with_chance)(500, length, rng);
  slice_into(lesson.labels, full({500, length - 1}, ignored, Dtype::i32), 1, 0, false);
  return examine(model, lesson);
}

// --- Operations: no clock is read.

// Multiplications and additions of one self-attention over n tokens, forward.
struct Operations {
  double scores = 0;       // Q K^T, and weights times V
  double projections = 0;  // to Q, K and V, and of the output
};
Operations operations_of(i64 n, i64 d_model) {
  Rng rng(1);
  const nn::MultiHeadAttention attention(d_model, 4, rng);
  const Variable x = constant(randn({1, n, d_model}, rng));
  const NoGradient no_gradient;
  nn::Pass pass = nn::Pass::inference();
  OperationTimes operations;
  {
    const ObserverScope scope(operations);
    nn::AttentionRecorder seen;  // asking for the weights chooses the composed form, product by product
    pass.recorder = &seen;
    attention(x, Mask(), pass);
  }
  Operations result;
  for (const OperationTime& o : operations.summed_up())
    (o.name.starts_with("linear") ? result.projections : result.scores) += o.flop;
  return result;
}

}  // namespace

Finding quadratic_operations(const Run& run) {
  constexpr i64 d_model = 128;
  Finding finding{.measured = {"operations of one layer of width 128, forward, in millions; growth from row to row",
                               "    n     with the scores     of the projections     together"}};
  Operations before;
  double least_together = 1e9, least_scores = 1e9, most_scores = 0;
  for (const i64 n : {32, 128, 512, 2048}) {
    run.go_on();
    const Operations now = operations_of(n, d_model);
    std::string line = numbers("%5d %15.1f %22.1f %18.1f", static_cast<int>(n), now.scores / 1e6, now.projections / 1e6,
                               (now.scores + now.projections) / 1e6);
    if (n > 32) {
      const double scores = now.scores / before.scores,
                   together = (now.scores + now.projections) / (before.scores + before.projections);
      line += numbers("     x %.0f, x %.0f, x %.1f", scores, now.projections / before.projections, together);
      least_scores = std::min(least_scores, scores);
      most_scores = std::max(most_scores, scores);
      least_together = std::min(least_together, together);
    }
    finding.measured.push_back(line);
    before = now;
  }
  const bool quadratic = least_scores == 16 && most_scores == 16, layer_too = least_together > 12;
  finding.verdict = verdict_of(quadratic, quadratic && layer_too);
  return finding;
}

Finding label_smoothing(const Run& run) {
  Finding finding;
  bool both = false, any = false;
  for (const bool endless : {true, false}) {
    const Scores plain = scores_with(0, endless, run), smooth = scores_with(0.1, endless, run);
    finding.measured.push_back(endless ? "trained on new sequences in every step; on 500 others, for seeds 1, 2, 3:"
                                       : "trained on 40 sequences again and again; on 500 others:");
    finding.measured.push_back(for_seeds("  perplexity  without", plain.perplexity) +
                               for_seeds("    with smoothing", smooth.perplexity));
    finding.measured.push_back(for_seeds("  accuracy    without", plain.accuracy) +
                               for_seeds("    with smoothing", smooth.accuracy));
    bool worse = true;
    for (size_t i = 0; i < std::size(seeds); ++i) worse = worse && smooth.perplexity[i] > 1.015 * plain.perplexity[i];
    const bool better = mean_of(smooth.accuracy) > mean_of(plain.accuracy) + 0.01;
    both = both || (worse && better);
    any = any || worse || better;
  }
  finding.verdict = verdict_of(any, both);
  return finding;
}

Finding gradients_at_the_start(const Run& run) {
  Finding finding{
      .measured = {"norm of the gradient of the last layer's W_2 before the first step, mean of three seeds",
                   "layers     norm after     norm before     1/sqrt(layers)"}};
  std::vector<double> post, pre;
  for (const i64 layers : {4, 16, 64}) {
    run.go_on();
    post.push_back(gradient_of_last_layer(false, layers));
    pre.push_back(gradient_of_last_layer(true, layers));
    finding.measured.push_back(numbers("%6d %14.3f %15.3f %18.3f", static_cast<int>(layers), post.back(), pre.back(),
                                       1 / std::sqrt(static_cast<double>(layers))));
  }
  const bool stays = post.back() > 0.8 * post.front(), shrinks = pre.back() < 0.6 * pre.front();
  finding.verdict = verdict_of(stays, shrinks);
  return finding;
}

Finding flipped_mask(const Run& run) {
  const double entropy = entropy_of_noisy_language(letters, with_chance);
  Finding finding{
      .measured = {numbers("mean loss over all sequences: at least %.3f without seeing the future; a guess: %.3f",
                           entropy, std::log(static_cast<double>(letters))),
                   "losses for seeds 1, 2, 3, each a mean over some sequences:"}};
  std::vector<double> training[2], writing[2];
  for (const bool flipped : {false, true}) {
    for (const u64 seed : seeds) {
      Rng rng(seed);
      SequenceModel model(config_of(false, 2), rng);
      if (flipped) model.mask = flipped_causal(line_length);
      training[flipped].push_back(train(model, noisy_language(letters, with_chance), {.steps = 300}, seed, run).loss);
      writing[flipped].push_back(score_when_writing(model, flipped, seed).loss);
    }
    const std::string mask = flipped ? "flipped mask, " : "causal mask,  ";
    finding.measured.push_back(for_seeds(mask + "in training:      ", training[flipped]));
    finding.measured.push_back(for_seeds(mask + "when it writes:   ", writing[flipped]));
  }
  const bool looks_better = most(training[true]) < entropy - 0.2;
  const bool cannot_write = least(writing[true]) > most(writing[false]) + 0.4;
  finding.verdict = verdict_of(looks_better, cannot_write);
  return finding;
}

}  // namespace orrery::claims
