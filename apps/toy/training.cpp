// Chapter 0. Training and examining the toy: draw a batch, forward, loss, backward, step.
//
// Serves: apps/toy/toy.cpp
#include "apps/toy/training.h"

#include <cmath>

#include "apps/program/stopwatch.h"
#include "apps/training/training_step.h"
#include "autograd/ops.h"
#include "nn/generate/decoding.h"
#include "optim/schedule.h"

namespace orrery {
namespace {

Rng weight_numbers(i64 seed) { return random_numbers(seed, 0); }
Rng data_numbers(i64 seed) { return random_numbers(seed, 1); }
Rng exam_numbers(i64 seed) { return random_numbers(seed, 2); }
Rng trial_numbers(i64 seed) { return random_numbers(seed, 3); }

// The share of targets, without padding, that have the highest score.
double token_accuracy(const Tensor& logits, const Tensor& gold, i32 pad) {
  const Tensor guess = argmax(logits);
  i64 right = 0, counted = 0;
  for (i64 i = 0; i < gold.count(); ++i) {
    const i32 label = gold.data<i32>()[i];
    counted += label != pad;
    right += label != pad && guess.data<i32>()[i] == label;
  }
  return counted == 0 ? 0 : static_cast<double>(right) / static_cast<double>(counted);
}

}  // namespace

nn::TransformerConfig ToyRecipe::config() const {
  nn::TransformerConfig result = model;
  result.src_vocab_size = result.tgt_vocab_size = task.vocab_size();
  result.pad_id = task.pad;
  result.max_len = std::max(task.source_length(), task.target_length());
  return result;
}

double ToyRecipe::rate(i64 step) const {
  const i64 flat = steps - static_cast<i64>(std::lround(cooldown * static_cast<double>(steps)));
  return rate_factor * optim::noam(step, model.layer.d_model, warmup) * optim::linear_cooldown(step, steps, flat);
}

ToyRecipe annotated_recipe() {
  ToyRecipe recipe;
  recipe.task = {.name = "copy",
                 .symbols = 10,
                 .min_length = 10,
                 .max_length = 10,
                 .pad = 0,
                 .begin = 1,
                 .end = -1,
                 .first_symbol = 1,
                 .begin_is_symbol = true};
  recipe.model = {.layer = {.d_model = 512,
                            .num_heads = 8,
                            .d_ff = 2048,
                            .dropout = 0.1,
                            .attention_dropout = 0.1,
                            .activation_dropout = 0.1,
                            .norm_first = true},
                  .num_encoder_layers = 2,
                  .num_decoder_layers = 2,
                  .final_norm = true};
  recipe.steps = 400, recipe.batch = 80, recipe.warmup = 400, recipe.rate_factor = 0.5;
  recipe.cooldown = 0, recipe.smoothing = 0, recipe.clip = 0;
  return recipe;
}

ToyTraining::ToyTraining(const ToyRecipe& recipe)
    : recipe_(recipe),
      weights_(weight_numbers(recipe.seed)),
      data_(data_numbers(recipe.seed)),
      model_(recipe.config(), weights_),
      adam_(model_.parameters(), {.beta1 = recipe.beta1, .beta2 = recipe.beta2, .eps = recipe.eps}) {}

ToyTraining::Batch ToyTraining::draw(Rng& data) const {
  const ToyTask& task = recipe_.task;
  std::vector<Sequence> sources, targets;
  for (i64 b = 0; b < recipe_.batch; ++b) {
    sources.push_back(task.draw(data, false));
    targets.push_back(task.target(sources.back()));
  }
  const Tensor target = batch_of(targets, task.target_length(), task.pad);
  return {.source = batch_of(sources, task.source_length(), task.pad),
          .input = slice(target, 1, 0, -1),  // teacher forcing: the decoder reads the correct answer so far
          .gold = slice(target, 1, 1)};      // and predicts its next token
}

// Gives the same bits for the same batch until a parameter changes, even with dropout, since a Pass is a value.
Variable ToyTraining::loss_of(const Batch& batch, ToyStep* result) const {
  nn::Pass pass = nn::Pass::training(static_cast<u64>(recipe_.seed), steps_done_ + 1);
  const Variable logits = model_(batch.source, batch.input, pass);
  const Variable loss =
      cross_entropy(logits, batch.gold, {.ignore_index = recipe_.task.pad, .label_smoothing = recipe_.smoothing});
  if (result) *result = {loss.item(), token_accuracy(logits.value(), batch.gold, recipe_.task.pad)};
  return loss;
}

ToyStep ToyTraining::step() {
  const Batch batch = draw(data_);
  ToyStep result;
  train_step({.program = "toy",
              .number = steps_done_ + 1,
              .rate = recipe_.rate(steps_done_ + 1),
              .clip = recipe_.clip,
              .rate_option = "--rate-factor"},
             adam_, [&] { return loss_of(batch, &result); });
  ++steps_done_;
  losses_.push_back(result.loss);
  return result;
}

double ToyTraining::measure(i64 exam_size) {
  Rng numbers = trial_numbers(recipe_.seed);
  const Batch batch = draw(numbers);
  const auto pass = [&] { backward(loss_of(batch)); };
  pass();  // the first pass also allocates memory and starts threads
  const double step = seconds_of(pass);
  adam_.clear_gradients();
  const i64 trial_size = std::min<i64>(exam_size, 50);
  const double trial = seconds_of([&] { examine(model_, recipe_.task, trial_size, recipe_.seed); });
  return step * static_cast<double>(recipe_.steps - steps_done_) +
         trial * static_cast<double>(exam_size) / static_cast<double>(trial_size);
}

i64 ToyTraining::tokens_per_step() const {
  return recipe_.batch * (recipe_.task.source_length() + recipe_.task.target_length() - 1);
}

std::string ToyTraining::hash() const { return training_hash(losses_, adam_); }

std::vector<Sequence> answers(const nn::Transformer& model, const ToyTask& task, const std::vector<Sequence>& sources) {
  constexpr size_t at_once = 200;
  const i64 longest = task.target_length() - 1;
  std::vector<Sequence> result;
  for (size_t first = 0; first < sources.size(); first += at_once) {
    const std::vector<Sequence> part(
        sources.begin() + static_cast<std::ptrdiff_t>(first),
        sources.begin() + static_cast<std::ptrdiff_t>(std::min(sources.size(), first + at_once)));
    const Tensor tokens = nn::greedy_decode(model, batch_of(part, task.source_length(), task.pad),
                                            {.bos = task.begin, .eos = task.end, .max_len = longest});
    for (size_t row = 0; row < part.size(); ++row) result.push_back(written(tokens, static_cast<i64>(row), task));
  }
  return result;
}

ToyExam examine(const nn::Transformer& model, const ToyTask& task, i64 count, i64 seed) {
  Rng numbers = exam_numbers(seed);
  ToyExam exam;
  for (i64 i = 0; i < count; ++i) exam.sources.push_back(task.draw(numbers, true));
  exam.answers = answers(model, task, exam.sources);
  for (size_t i = 0; i < exam.sources.size(); ++i) exam.right += exam.answers[i] == task.answer(exam.sources[i]);
  return exam;
}

}  // namespace orrery
