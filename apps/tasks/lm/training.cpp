// Chapter 9. Training a GPT on a text: its recipe, its blocks, its loss, and its evaluations.
#include "apps/tasks/lm/training.h"

#include <algorithm>

#include "apps/program/stopwatch.h"
#include "apps/training/random_numbers.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoding.h"
#include "nn/models/config_json.h"

namespace orrery {

LmRecipe::LmRecipe()
    : TrainingRecipe{.steps = 2000,
                     .optimizer = OptimizerKind::adamw,
                     .beta2 = 0.99,
                     .eps = 1e-8,
                     .weight_decay = 0.1,
                     .schedule = Schedule::cosine,
                     .rate = 1e-3,
                     .last_rate = 1e-4,
                     .warmup = automatic,
                     .average = 0.99,
                     .evaluate_every = 250} {}

LmRecipe LmRecipe::resolved() const {
  LmRecipe result = *this;
  const i64 least = schedule == Schedule::noam || schedule == Schedule::inverse_sqrt ? 1 : 0;
  if (warmup == automatic) result.warmup = std::clamp<i64>(steps / 20, least, 100);
  result.width = model.layer.d_model;
  return result;
}

void LmRecipe::validate() const {
  using nn::config_json::check_positive;
  resolved().TrainingRecipe::validate();
  check_positive("lm recipe", "batch", batch);
  check_positive("lm recipe", "estimate_batches", estimate_batches);
}

double loss_over(const nn::Gpt& model, const Text& text, i64 stride, const std::function<void(i64 counted)>& progress) {
  const NoGradient nothing_recorded;
  const i64 block = model.config.max_len, count = text.count() - 1;  // tokens that follow another
  check(count > 0, "lm", "a text of ", text.count(), " tokens is too short: it needs at least two");
  check(stride >= 0 && stride <= block, "lm", "the stride must be from 1 to ", block, ", the model's length, not ",
        stride);
  if (stride == 0) stride = block;
  constexpr i64 tokens_at_once = 4096;
  const i64 at_once = std::max<i64>(1, tokens_at_once / block);
  double total = 0;
  for (i64 predicted = 0; predicted < count;) {  // the tokens that have counted
    // Several blocks of the whole length make one batch; a shorter one, where the text begins or ends, is one alone.
    const i64 begin = std::max<i64>(0, predicted + stride - block);
    const bool full = predicted + stride >= block;
    const i64 blocks = full ? std::min(at_once, (count - predicted) / stride) : 0;
    const i64 end = blocks > 0 ? predicted + stride : std::min(count, predicted + stride), length = end - begin;
    TextBatch batch = blocks_from(text, begin, std::max<i64>(1, blocks), length, stride);
    const CrossEntropyOptions sum{.reduction = Reduction::sum};
    i32* labels = batch.labels.write<i32>();
    for (i64 b = 0; b < batch.labels.size(0); ++b)  // those that an earlier block predicted do not count again
      std::fill_n(labels + b * length, predicted - begin, sum.ignore_index);
    nn::Pass pass = nn::Pass::inference();
    total += model.loss(batch.ids, batch.labels, pass, sum).item();
    predicted = end + std::max<i64>(0, blocks - 1) * stride;
    if (progress) progress(predicted);
  }
  return total / static_cast<double>(count);
}

namespace {

nn::GptConfig for_text(nn::GptConfig config, const TextData& data) {
  config.vocab_size = data.tokenizer.size();
  return config;
}

nn::Gpt new_model(const LmRecipe& recipe, const TextData& data) {
  Rng weights = random_numbers(recipe.seed, Purpose::weights);
  return {for_text(recipe.model, data), weights};
}

}  // namespace

LmTask::LmTask(const LmRecipe& recipe, const TextData& data)
    : model(new_model(recipe, data)),
      recipe_(recipe.resolved()),
      data_(data),
      validation_length_(length_of(data.validation, data.tokenizer)),
      blocks_(random_numbers(recipe.seed, Purpose::training)),
      judged_(random_numbers(recipe.seed, Purpose::held_out)),
      shuffled_(data_.training, recipe.model.max_len, blocks_) {}

TextBatch LmTask::next_batch(i64 number) {
  return recipe_.replacement ? random_blocks(data_.training, recipe_.batch, recipe_.model.max_len, blocks_)
                             : shuffled_.batch(number * recipe_.batch, recipe_.batch);
}

std::vector<Items> LmTask::draw(i64 step, i64 micro_batches) {
  batches_.clear();
  std::vector<Items> items;
  for (i64 i = 0; i < micro_batches; ++i) {
    batches_.push_back(next_batch((step - 1) * micro_batches + i));
    items.push_back({batches_.back().ids.count()});
  }
  return items;
}

BatchLoss LmTask::loss(i64 micro_batch, nn::Pass& pass) {
  const TextBatch& batch = batches_[static_cast<size_t>(micro_batch)];
  return {model.loss(batch.ids, batch.labels, pass)};
}

double LmTask::estimate_batch() {
  const NoGradient nothing_recorded;
  const TextBatch batch = random_blocks(data_.validation, recipe_.batch, recipe_.model.max_len, judged_);
  nn::Pass pass = nn::Pass::inference();
  return model.loss(batch.ids, batch.labels, pass).item();
}

std::vector<Score> LmTask::evaluate() {
  double total = 0;
  for (i64 i = 0; i < recipe_.estimate_batches; ++i) total += estimate_batch();
  last_estimate_ = total / static_cast<double>(recipe_.estimate_batches);
  return {{"validation estimate", last_estimate_}};
}

double LmTask::seconds_of_evaluation() {
  return seconds_of([&] { estimate_batch(); }) * static_cast<double>(recipe_.estimate_batches);
}

void LmTask::go_to(const std::vector<u64>& positions) {
  blocks_ = Rng(blocks_.seed(), positions.at(0));
  judged_ = Rng(judged_.seed(), positions.at(1));
}

std::string LmTask::sample(i64 count) const {
  Rng numbers = random_numbers(recipe_.seed, Purpose::extra);
  std::string text;
  nn::generate(model, data_.tokenizer.beginning(), count, {.temperature = 0.8}, numbers, [&](i32 token) {
    text += data_.tokenizer.text(token);
    return true;
  });
  return text;
}

double end_with_better(Trainer& trainer, const LmTask& task) {
  const bool is_best = trainer.best_step() == 0 || trainer.best_step() == trainer.steps_done();
  double last = 0, best = 0;
  trainer.with_judged([&] { last = task.validation_loss(); });
  if (!is_best) trainer.with_best([&] { best = task.validation_loss(); });
  if (is_best || last < best) {
    trainer.end_with_judged();
    return last;
  }
  trainer.end_with_best();
  return best;
}

}  // namespace orrery
