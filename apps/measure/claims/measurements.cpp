// Chapter 9. The claims, their tiny model and its short training, and what each of them measures.
//
// Each training is repeated with three seeds. The seed decides the first weights and the data.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/measure/claims/claims.h"
#include "apps/program/terminal.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/layout.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/layers/embedding.h"
#include "nn/models/stack.h"
#include "nn/positions/positional_encoding.h"
#include "optim/adam.h"
#include "optim/schedule.h"

namespace orrery::claims {
namespace {

constexpr i64 line_length = 16;
constexpr u64 seeds[] = {1, 2, 3};
// Where the random numbers of data start, so that those of exams are none of the training's.
constexpr u64 training_numbers = u64{1} << 40, exam_numbers = u64{2} << 40;
// How often a language repeats the letter before the last: one that is nearly certain, and one with much chance.
constexpr double nearly_certain = 0.95, with_chance = 0.75;

// A tiny language model: letters in, scores for a letter out at every position.
//   x = sqrt(d_model) embedding[ids] + positions;   logits = generator(encoder(x, mask))
struct SequenceModel : nn::Module {
  Mask mask = Mask::causal();
  nn::Embedding embedding;
  nn::Encoder encoder;
  nn::Linear generator;
  nn::PositionalEncoding positions;

  SequenceModel(nn::Positions order, i64 max_len, i64 layers, bool norm_first, Rng& rng)
      : embedding(letters, 32, rng),
        encoder(layers, norm_first, {.d_model = 32, .num_heads = 4, .d_ff = 64, .dropout = 0, .norm_first = norm_first},
                rng),
        generator(32, letters, rng),
        positions(order, max_len, 32, rng) {
    name_parameters();
  }
  // ids i32 [B, T] to logits [B, T, letters].
  Variable operator()(const Tensor& ids, nn::Pass& pass) const {
    return generator(encoder(positions(embedding(ids) * std::sqrt(32.0)), mask, pass));
  }
  void visit(nn::Visitor& v) override {
    v("embedding", embedding);
    v("positions", positions);
    v("encoder", encoder);
    v("generator", generator);
  }
};

SequenceModel new_model(u64 seed, nn::Positions order = nn::Positions::sinusoidal, i64 max_len = line_length) {
  Rng rng(seed);
  return {order, max_len, 2, false, rng};
}

using Draw = std::function<Lesson(i64 count, i64 length, Rng& rng)>;

// Adam with warm-up, on batches of 16 lines. Returns the mean loss over the last tenth of the steps, without smoothing.
double train(SequenceModel& model, const Draw& draw, i64 steps, u64 seed, const Run& run, double smoothing = 0) {
  Rng data(seed, training_numbers);
  optim::Adam adam(model.parameters(), {.beta2 = 0.98});
  const i64 last = steps / 10;
  double mean = 0;
  for (i64 step = 1; step <= steps; ++step) {
    run.go_on();
    const Lesson lesson = draw(16, line_length, data);
    nn::Pass pass = nn::Pass::training(seed, step);
    const Variable logits = model(lesson.ids, pass);
    const Variable plain = cross_entropy(constant(logits.value()), lesson.labels, {.ignore_index = ignored});
    if (step > steps - last) mean += plain.item() / static_cast<double>(last);
    backward(cross_entropy(logits, lesson.labels, {.ignore_index = ignored, .label_smoothing = smoothing}));
    adam.step(optim::warmup_cosine(step, 3e-3, 20, steps), 1.0);
  }
  return mean;
}

// Per target: cross entropy, and the share of targets with the highest score.
struct Score {
  double loss = 0, accuracy = 0;
};
Score examine(const SequenceModel& model, const Lesson& lesson) {
  const NoGradient no_gradient;
  nn::Pass pass = nn::Pass::inference();
  const Variable logits = model(lesson.ids, pass);
  const Tensor best = argmax(logits.value());
  i64 right = 0, asked = 0;
  for (i64 i = 0; i < lesson.labels.count(); ++i) {
    const i32 label = lesson.labels.data<i32>()[i];
    asked += label != ignored;
    right += label == best.data<i32>()[i];
  }
  return {.loss = cross_entropy(logits, lesson.labels, {.ignore_index = ignored}).item(),
          .accuracy = static_cast<double>(right) / static_cast<double>(asked)};
}

// Nothing is asked before the position `first`.
void ask_from(Lesson& lesson, i64 first) {
  slice_into(lesson.labels, full({lesson.labels.size(0), first}, ignored, Dtype::i32), 1, 0, false);
}

template <class Measure> std::vector<double> for_each_seed(const Measure& measure) {
  std::vector<double> results;
  for (const u64 seed : seeds) results.push_back(measure(seed));
  return results;
}
std::string line_of(const std::string& what, const std::vector<double>& values) {
  std::string line = what;
  for (const double value : values) line += numbers("  %.3f", value);
  return line;
}
double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
double most(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }
double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// --- Positions.

// A model that has learned, from sequences of 16 letters, to name the letter before each one.
SequenceModel trained(nn::Positions order, i64 steps, u64 seed, const Run& run) {
  SequenceModel model = new_model(seed, order, 2 * line_length);
  train(model, earlier_letter, steps, seed, run);
  return model;
}
// Its accuracy on 200 new sequences, at positions [first, limit).
double accuracy_at(const SequenceModel& model, i64 first, i64 limit, u64 seed) {
  Rng rng(seed, exam_numbers);
  Lesson lesson = earlier_letter(200, limit, rng);
  if (first > 0) ask_from(lesson, first);
  return examine(model, lesson).accuracy;
}

Finding learned_equals_sinusoidal(const Run& run) {
  Finding finding{.measured = {"to name the letter before each one; accuracy for seeds 1, 2, 3 (a guess: 0.125)"}};
  bool close[2] = {true, true};
  for (const bool late : {false, true}) {
    std::vector<double> accuracies[2];
    for (const nn::Positions order : {nn::Positions::sinusoidal, nn::Positions::learned}) {
      const bool learned = order == nn::Positions::learned;
      const i64 steps = late ? 400 : 100;
      accuracies[learned] =
          for_each_seed([&](u64 seed) { return accuracy_at(trained(order, steps, seed, run), 0, line_length, seed); });
      finding.measured.push_back(
          line_of(numbers("%ld steps, %s", steps, learned ? "learned:   " : "sinusoidal:"), accuracies[learned]));
    }
    for (size_t i = 0; i < std::size(seeds); ++i)
      close[late] = close[late] && std::abs(accuracies[0][i] - accuracies[1][i]) < 0.05;
  }
  finding.verdict = verdict_of(close[true], close[false]);
  return finding;
}

// Accuracies beyond the trained length.
std::vector<double> extrapolation(nn::Positions order, const Run& run, Finding& finding) {
  std::vector<double> within, beyond;
  for (const u64 seed : seeds) {
    const SequenceModel model = trained(order, 400, seed, run);
    within.push_back(accuracy_at(model, 0, line_length, seed));
    beyond.push_back(accuracy_at(model, line_length, 2 * line_length, seed));
  }
  finding.measured = {"trained on 16 letters, to name the one before; accuracy for seeds 1, 2, 3 (guess 0.125)",
                      line_of("positions  0 to 15:", within), line_of("positions 16 to 31:", beyond)};
  check(least(within) > 0.95, "claims", "a model did not learn its task within the trained length");
  return beyond;
}
Finding sinusoidal_extrapolates(const Run& run) {
  Finding finding;
  const std::vector<double> beyond = extrapolation(nn::Positions::sinusoidal, run, finding);
  finding.verdict = verdict_of(most(beyond) > 0.5, least(beyond) > 0.8);
  return finding;
}
Finding learned_do_not_extrapolate(const Run& run) {
  Finding finding;
  const std::vector<double> beyond = extrapolation(nn::Positions::learned, run, finding);
  finding.verdict = verdict_of(most(beyond) <= 0.5, least(beyond) <= 0.8);
  return finding;
}

// --- Label smoothing.

// Draws from the same 40 lines again and again.
Draw only_forty(const Draw& language, u64 seed) {
  Rng rng(seed, u64{3} << 40);
  const Lesson all = language(40, line_length, rng);
  return [all](i64 count, i64 length, Rng& rng) {
    Lesson lesson{.ids = full({count, length}, 0, Dtype::i32), .labels = full({count, length}, 0, Dtype::i32)};
    for (i64 row = 0; row < count; ++row) {
      const i64 i = rng.integer(0, all.ids.size(0));
      slice_into(lesson.ids, all.ids.rows(i, i + 1), 0, row, false);
      slice_into(lesson.labels, all.labels.rows(i, i + 1), 0, row, false);
    }
    return lesson;
  };
}

Finding label_smoothing(const Run& run) {
  const Draw language = [](i64 count, i64 length, Rng& rng) {
    return noisy_language(nearly_certain, count, length, rng);
  };
  Finding finding;
  bool both = false, any = false;
  for (const bool endless : {true, false}) {
    std::vector<double> perplexity[2], accuracy[2];  // without and with smoothing, on 500 new lines for each seed
    for (const bool smooth : {false, true})
      for (const u64 seed : seeds) {
        Rng exam(seed, exam_numbers);
        SequenceModel model = new_model(seed);
        train(model, endless ? language : only_forty(language, seed), 300, seed, run, smooth ? 0.1 : 0);
        const Score score = examine(model, language(500, line_length, exam));
        perplexity[smooth].push_back(std::exp(score.loss));
        accuracy[smooth].push_back(score.accuracy);
      }
    finding.measured.push_back(endless ? "trained on new sequences in every step; on 500 others, for seeds 1, 2, 3:"
                                       : "trained on 40 sequences again and again; on 500 others:");
    finding.measured.push_back(line_of("  perplexity  without", perplexity[0]) +
                               line_of("    with smoothing", perplexity[1]));
    finding.measured.push_back(line_of("  accuracy    without", accuracy[0]) +
                               line_of("    with smoothing", accuracy[1]));
    bool worse = true;
    for (size_t i = 0; i < std::size(seeds); ++i) worse = worse && perplexity[1][i] > 1.015 * perplexity[0][i];
    const bool better = mean_of(accuracy[1]) > mean_of(accuracy[0]) + 0.01;
    both = both || (worse && better);
    any = any || worse || better;
  }
  finding.verdict = verdict_of(any, both);
  return finding;
}

// --- Gradients before the first step.

// The norm of dL/dW of the last layer's second feed-forward matrix before the first step, mean of three seeds.
double gradient_of_last_layer(bool norm_first, i64 num_layers) {
  return mean_of(for_each_seed([&](u64 seed) {
    Rng rng(seed);
    SequenceModel model(nn::Positions::sinusoidal, line_length, num_layers, norm_first, rng);
    const Lesson lesson = earlier_letter(16, line_length, rng);
    nn::Pass pass = nn::Pass::inference();
    backward(cross_entropy(model(lesson.ids, pass), lesson.labels, {.ignore_index = ignored}));
    return std::sqrt(sum_of_squares(model.encoder.layers.back().feed_forward.linear2.weight.gradient()));
  }));
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
    finding.measured.push_back(numbers("%6ld %14.3f %15.3f %18.3f", layers, post.back(), pre.back(),
                                       1 / std::sqrt(static_cast<double>(layers))));
  }
  finding.verdict = verdict_of(post.back() > 0.8 * post.front(), pre.back() < 0.6 * pre.front());
  return finding;
}

// --- A flipped mask.

// True and false confused: query i sees exactly the keys that a causal mask hides, those after it.
Mask flipped_causal(i64 length) {
  Tensor allow = zeros({length, length}, Dtype::i32);
  for (i64 i = 0; i < length; ++i)
    for (i64 j = i + 1; j < length; ++j) allow.set(i * length + j, 1);
  return Mask::allow(allow);
}

Finding flipped_mask(const Run& run) {
  const double entropy = entropy_of_noisy_language(with_chance);
  Finding finding{
      .measured = {numbers("mean loss over all sequences: at least %.3f without seeing the future; a guess: %.3f",
                           entropy, std::log(static_cast<double>(letters))),
                   "losses for seeds 1, 2, 3, each a mean over some sequences:"}};
  const Draw language = [](i64 count, i64 length, Rng& rng) { return noisy_language(with_chance, count, length, rng); };
  std::vector<double> training[2], writing[2];
  for (const bool flipped : {false, true}) {
    for (const u64 seed : seeds) {
      SequenceModel model = new_model(seed);
      if (flipped) model.mask = flipped_causal(line_length);
      training[flipped].push_back(train(model, language, 300, seed, run));
      // When it writes, nothing follows the letter that it must continue.
      constexpr i64 length = line_length / 2;
      if (flipped) model.mask = flipped_causal(length);
      Rng exam(seed, exam_numbers);
      Lesson lesson = language(500, length, exam);
      ask_from(lesson, length - 1);
      writing[flipped].push_back(examine(model, lesson).loss);
    }
    const std::string mask = flipped ? "flipped mask, " : "causal mask,  ";
    finding.measured.push_back(line_of(mask + "in training:      ", training[flipped]));
    finding.measured.push_back(line_of(mask + "when it writes:   ", writing[flipped]));
  }
  finding.verdict = verdict_of(most(training[true]) < entropy - 0.2, least(writing[true]) > most(writing[false]) + 0.4);
  return finding;
}

}  // namespace

Lesson earlier_letter(i64 count, i64 length, Rng& rng) {
  Lesson lesson{.ids = randint(0, letters, {count, length}, rng), .labels = full({count, length}, ignored, Dtype::i32)};
  slice_into(lesson.labels, slice(lesson.ids, 1, 0, -1), 1, 1, false);
  return lesson;
}

Lesson noisy_language(double repeats, i64 count, i64 length, Rng& rng) {
  Tensor text = randint(0, letters, {count, length + 1}, rng);
  i32* letter = text.write<i32>();
  for (i64 row = 0; row < count; ++row)
    for (i64 t = 2; t <= length; ++t) {
      i32* here = letter + row * (length + 1) + t;
      if (rng.uniform() < repeats) *here = here[-2];
    }
  return {.ids = slice(text, 1, 0, -1), .labels = slice(text, 1, 1)};
}

double entropy_of_noisy_language(double repeats) {
  const double other = (1 - repeats) / static_cast<double>(letters), same = repeats + other;
  return -same * std::log(same) - static_cast<double>(letters - 1) * other * std::log(other);
}

const std::vector<Claim>& all_claims() {
  static const std::vector<Claim> all{
      {"learned-positions", "Learned and sinusoidal positions give nearly identical results.",
       "Vaswani et al. 2017, section 3.5 and table 3, row E",
       "less than 5 points between the two for every seed, after 100 steps and after 400; partly, if only one of the "
       "two",
       learned_equals_sinusoidal},
      {"extrapolation-sinusoidal",
       "Sinusoidal positions may allow a model to extrapolate to sequences longer than those of its training.",
       "Vaswani et al. 2017, section 3.5",
       "beyond the trained length the accuracy of every seed is above 80 %; partly, if one is above 50 %",
       sinusoidal_extrapolates},
      {"extrapolation-learned",
       "Learned positions do not extrapolate: those beyond the trained length were never trained.",
       "the reason for sinusoids in Vaswani et al. 2017, section 3.5",
       "beyond the trained length the accuracy of no seed is above 50 %; partly, if one is, but not all are above 80 %",
       learned_do_not_extrapolate},
      {"label-smoothing", "Label smoothing of 0.1 hurts perplexity but improves accuracy.",
       "Vaswani et al. 2017, section 5.4",
       "perplexity is more than 1.5 % worse for every seed, and accuracy more than one point better in the mean, in "
       "one of the two trainings; partly, if only one of the two",
       label_smoothing},
      {"first-gradients",
       "Before the first step, the gradients near the output are large whatever the depth with normalisation after "
       "each sub-layer, and shrink with the depth with normalisation before it.",
       "Xiong et al. 2020, abstract and theorem 1",
       "from 4 to 64 layers the gradient keeps more than 80 % of its size with normalisation after, and less than 60 % "
       "with normalisation before; partly, if only one of the two",
       gradients_at_the_start},
      {"flipped-mask",
       "A causal mask with true and false confused makes the loss of the training better, and the model useless.",
       "a common mistake: in PyTorch, true means hidden for nn.MultiheadAttention, and visible for "
       "scaled_dot_product_attention",
       "in training every loss is 0.2 below the least mean loss without seeing the future; when it writes, 0.4 above "
       "that of the right mask; partly, if only one of the two",
       flipped_mask}};
  return all;
}

}  // namespace orrery::claims
