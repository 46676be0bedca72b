// Chapter 9. Short trainings: a step is forward, loss, backward, clipping and Adam.
#include "apps/measure/claims/training.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "apps/program/columns.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/cross_entropy.h"
#include "autograd/ops/layout.h"
#include "core/tensor_ops.h"
#include "optim/adam.h"
#include "optim/schedule.h"

namespace orrery::claims {

SequenceModel::SequenceModel(const SequenceModelConfig& config, Rng& rng)
    : mask(config.mask),
      embedding(config.symbols, config.layer.d_model, rng),
      encoder(config.num_layers, config.layer.norm_first, config.layer, rng),
      generator(config.layer.d_model, config.symbols, rng) {
  if (config.order == Order::sinusoidal)
    positions.emplace(nn::Positions::sinusoidal, config.max_len, config.layer.d_model, rng);
  if (config.order == Order::learned)
    positions.emplace(nn::Positions::learned, config.max_len, config.layer.d_model, rng);
  name_parameters();
}

Variable SequenceModel::operator()(const Tensor& ids, nn::Pass& pass) const {
  const Variable x = embedding(ids) * std::sqrt(static_cast<double>(embedding.weight.size(1)));
  return generator(encoder(positions ? (*positions)(x) : x, mask, pass));
}

void SequenceModel::visit(nn::Visitor& v) {
  v("embedding", embedding);
  v("positions", positions);
  v("encoder", encoder);
  v("generator", generator);
}

namespace {

Score score_of(const Tensor& logits, const Tensor& labels) {
  const NoGradient no_gradient;
  const Tensor best = argmax(logits);
  i64 right = 0, asked = 0;
  for (i64 i = 0; i < labels.count(); ++i) {
    const i32 label = labels.data<i32>()[i];
    asked += label != ignored;
    right += label == best.data<i32>()[i];
  }
  return {.loss = cross_entropy(constant(logits), labels, {.ignore_index = ignored}).item(),
          .accuracy = static_cast<double>(right) / static_cast<double>(asked)};
}

}  // namespace

Task earlier_token(i64 symbols, i64 back) {
  return [=](i64 count, i64 length, Rng& rng) {
    Lesson lesson{.ids = randint(0, symbols, {count, length}, rng),
                  .labels = full({count, length}, ignored, Dtype::i32)};
    slice_into(lesson.labels, slice(lesson.ids, 1, 0, -back), 1, back, false);
    return lesson;
  };
}

Task noisy_language(i64 symbols, double repeats) {
  return [=](i64 count, i64 length, Rng& rng) {
    Tensor text = randint(0, symbols, {count, length + 1}, rng);
    i32* token = text.write<i32>();
    for (i64 row = 0; row < count; ++row)
      for (i64 t = 2; t <= length; ++t) {
        i32* here = token + row * (length + 1) + t;
        if (rng.uniform() < repeats) *here = here[-2];
      }
    return Lesson{.ids = slice(text, 1, 0, -1), .labels = slice(text, 1, 1)};
  };
}

double entropy_of_noisy_language(i64 symbols, double repeats) {
  const double other = (1 - repeats) / static_cast<double>(symbols), same = repeats + other;
  return -same * std::log(same) - static_cast<double>(symbols - 1) * other * std::log(other);
}

Score examine(const SequenceModel& model, const Lesson& lesson) {
  const NoGradient no_gradient;
  nn::Pass pass = nn::Pass::inference();
  return score_of(model(lesson.ids, pass).value(), lesson.labels);
}

Score train(SequenceModel& model, const Task& task, const TrainingPlan& plan, u64 seed, const Run& run) {
  Rng data(seed, training_numbers);
  optim::Adam adam(model.parameters(), {.beta2 = 0.98});
  const i64 last = std::max<i64>(1, plan.steps / 10);
  Score mean;
  for (i64 step = 1; step <= plan.steps; ++step) {
    run.go_on();
    const Lesson lesson = task(plan.batch, plan.length, data);
    nn::Pass pass = nn::Pass::training(seed, step);
    const Variable logits = model(lesson.ids, pass);
    const Score score = score_of(logits.value(), lesson.labels);
    if (!std::isfinite(score.loss)) return {.loss = std::numeric_limits<double>::infinity(), .accuracy = 0};
    if (step > plan.steps - last) {
      mean.loss += score.loss / static_cast<double>(last);
      mean.accuracy += score.accuracy / static_cast<double>(last);
    }
    backward(cross_entropy(logits, lesson.labels, {.ignore_index = ignored, .label_smoothing = plan.smoothing}));
    adam.step(optim::warmup_cosine(step, plan.rate, plan.warmup, plan.steps), 1.0);
  }
  return mean;
}

std::string for_seeds(const std::string& what, const std::vector<double>& values) {
  std::string line = what;
  for (const double value : values) line += numbers("  %.3f", value);
  return line;
}

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }
double most(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }
double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace orrery::claims
