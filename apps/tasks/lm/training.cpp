// Chapter 9. Training a GPT on a text: its recipe, its blocks, its loss, its evaluations, and what suits a time.
#include "apps/tasks/lm/training.h"

#include <algorithm>
#include <array>
#include <sstream>

#include "apps/program/stopwatch.h"
#include "apps/training/recipe.h"
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

LanguageModelConfig LmRecipe::model_for(const TextData& data) const {
  LanguageModelConfig config = model;
  config.vocab_size = data.tokenizer.size();
  return config;
}

void LmRecipe::validate() const {
  using nn::config_json::check_positive;
  resolved().TrainingRecipe::validate();
  check_positive("lm recipe", "batch", batch);
  check_positive("lm recipe", "estimate_batches", estimate_batches);
}

double loss_over(const LanguageModel& model, const Text& text, i64 stride,
                 const std::function<void(i64 counted)>& progress) {
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

LanguageModel new_model(const LmRecipe& recipe, const TextData& data) {
  Rng weights = random_numbers(recipe.seed, Purpose::weights);
  return {recipe.model_for(data), weights};
}

}  // namespace

LmTask::LmTask(LmRecipe& recipe, const TextData& data)
    : model(new_model(recipe, data)),
      recipe_(recipe = recipe.resolved()),
      data_(data),
      validation_length_(length_of(data.validation, data.tokenizer)),
      blocks_(random_numbers(recipe.seed, Purpose::training)),
      judged_(random_numbers(recipe.seed, Purpose::held_out)),
      shuffled_(data_.training, recipe.length(), blocks_) {}

TextBatch LmTask::next_batch(i64 number) {
  return recipe_.replacement ? random_blocks(data_.training, recipe_.batch, recipe_.length(), blocks_)
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

double LmTask::estimate(i64 batches) {
  const NoGradient nothing_recorded;
  const auto draw = [&](i64) { return random_blocks(data_.validation, recipe_.batch, recipe_.length(), judged_); };
  const auto judge = [&](const TextBatch& batch) {
    nn::Pass pass = nn::Pass::inference();
    return Ranks::Numbers{model.loss(batch.ids, batch.labels, pass).item()};
  };
  return judges().sums(batches, draw, judge)[0];
}

std::vector<Score> LmTask::evaluate() {
  last_estimate_ = estimate(recipe_.estimate_batches) / static_cast<double>(recipe_.estimate_batches);
  return {{"validation estimate", last_estimate_}};
}

double LmTask::seconds_of_evaluation() {
  const i64 ranks = judges().size();  // each of them judges one
  return seconds_of([&] { estimate(ranks); }) / static_cast<double>(ranks) *
         static_cast<double>(recipe_.estimate_batches);
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

namespace {

// A model and its batch, and the least work for which it is better than the one before. Work is parameters times
// tokens. The smallest model shows how much of it this machine can do in the whole time.
struct Plan {
  double least_work;
  i64 layers, heads, d_model, block, batch;
  double rate, dropout;
};
constexpr std::array<Plan, 3> plans{{{0, 4, 4, 128, 64, 24, 0.008, 0.1},
                                     {1e13, 4, 4, 256, 64, 24, 0.006, 0.2},
                                     {1e14, 6, 6, 384, 128, 24, 0.004, 0.3}}};
// How often a text may be read without dropout. On tinyshakespeare, dropout harmed where the text was read 4 times, and
// helped where it was read 14 times.
constexpr double most_times_without_dropout = 6;
constexpr i64 evaluations = 8;

void take(const Plan& plan, LmRecipe& recipe) {
  auto& model = recipe.model;
  model.num_layers = plan.layers;
  model.layer.num_heads = plan.heads;
  model.max_len = recipe.block = plan.block;
  model.layer.d_model = plan.d_model;
  model.layer.d_ff = 4 * plan.d_model;
  model.layer.dropout = plan.dropout;
  model.rotary = model.query_key_norm = true;
  recipe.batch = std::max<i64>(1, plan.batch / recipe.micro_batches);  // several, if there are several ranks
  recipe.optimizer = OptimizerKind::muon;
  recipe.weight_decay = 0.1;
  TimeBudget::let_rate_fall(recipe, plan.rate);
}

bool fits(const Plan& plan, const TextData& data) {
  return data.validation.count() > plan.block && data.training.count() >= 2 * plan.block;
}

std::string words_for(const LmRecipe& recipe) {
  std::ostringstream text;
  text << recipe.model.num_layers << " layers of width " << recipe.model.layer.d_model << ", blocks of "
       << recipe.model.max_len << ", " << recipe.batch * recipe.micro_batches << " in a batch, rate " << recipe.rate
       << ", dropout " << recipe.model.layer.dropout << ", rotary positions, normalised queries and keys";
  return text.str();
}

}  // namespace

void fit(LmRecipe& recipe, const TextData& data, TimeBudget& budget) {
  const i64 most_batches = recipe.estimate_batches;
  take(plans[0], recipe);
  double step = budget.step();
  const auto tokens_of_step = [&] {
    return static_cast<double>(recipe.batch * recipe.model.max_len * recipe.micro_batches);
  };
  const double possible =
      budget.seconds() / step * static_cast<double>(recipe.model_for(data).parameter_count()) * tokens_of_step();
  for (const Plan& plan : plans)
    if (possible >= plan.least_work && fits(plan, data)) take(plan, recipe);
  if (recipe.model.layer.d_model != plans[0].d_model) step = budget.step();
  // Backward takes twice as long as forward. At the end the whole validation text is read up to twice, and a sample is
  // written.
  const double batch = step / 3, of_token = batch * static_cast<double>(recipe.micro_batches) / tokens_of_step();
  recipe.estimate_batches = std::clamp<i64>(
      std::llround(TimeBudget::for_evaluations * budget.seconds() / batch / evaluations), 1, most_batches);
  budget.plan(recipe,
              {.step = step,
               .evaluation = static_cast<double>(recipe.estimate_batches) * batch,
               .afterwards = 1 + 2 * of_token * static_cast<double>(data.validation.count())},
              evaluations);
  const double tokens = static_cast<double>(recipe.steps) * tokens_of_step();
  if (tokens <= most_times_without_dropout * static_cast<double>(data.training.count()))
    recipe.model.layer.dropout = 0;  // a text that is new to the model cannot be learned by heart
  budget.chosen = words_for(recipe);
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
