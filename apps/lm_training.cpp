// Chapter 9. Training a GPT on a text: draw blocks, predict, compare, go back, step; and judge.
//
// Read next: apps/text_data.h
#include "apps/lm_training.h"

#include <cmath>
#include <limits>

#include "apps/stopwatch.h"
#include "autograd/first_nan.h"
#include "autograd/ops.h"
#include "core/hash.h"
#include "optim/clip.h"
#include "optim/schedule.h"

namespace orrery {
namespace {

// Stretches of one seed's random sequence, 2^40 numbers each, that never meet.
Rng numbers_of(i64 seed, u64 which) { return Rng(static_cast<u64>(seed), which << 40); }

nn::GptConfig for_text(nn::GptConfig config, const TextData& data) {
  config.vocab_size = data.alphabet.size();
  return config;
}

}  // namespace

double LmRecipe::rate_of(i64 step) const { return optim::warmup_cosine(step, rate, warmup, steps, last_rate); }

LmTraining::LmTraining(const LmRecipe& recipe, const TextData& data)
    : recipe_(recipe),
      data_(data),
      weights_(numbers_of(recipe.seed, 0)),
      blocks_(numbers_of(recipe.seed, 1)),
      judged_(numbers_of(recipe.seed, 2)),
      model_(for_text(recipe.model, data), weights_),
      adam_(optim::decay_matrices(model_.parameters(), recipe.weight_decay),
            {.beta1 = recipe.beta1, .beta2 = recipe.beta2, .weight_decay = recipe.weight_decay}) {}

// The same bits for the same batch as long as no parameter moves, dropout included: a pass is a value.
Variable LmTraining::loss_of(const TextBatch& batch) const {
  nn::Pass pass = nn::Pass::training(static_cast<u64>(recipe_.seed), steps_done_ + 1);
  return cross_entropy(model_(batch.ids, pass), batch.next);
}

double LmTraining::step() {
  const TextBatch batch = random_blocks(data_.training, recipe_.batch, recipe_.model.max_len, blocks_);
  const double rate = recipe_.rate_of(steps_done_ + 1);
  double loss = 0;
  try {
    const Variable now = loss_of(batch);
    loss = now.item();
    check(std::isfinite(loss), "loss", "is ", loss);
    backward(now);
    // Without clipping the norm is still measured: one look at each gradient.
    adam_.step(rate, recipe_.clip > 0 ? recipe_.clip : std::numeric_limits<double>::infinity());
  } catch (const Error& error) {
    adam_.clear_gradients();
    fail("lm", "step ", steps_done_ + 1, " was not made, since a number is not finite (", error.what(),
         "); a smaller --rate or a longer --warmup may help\n", explain_non_finite([&] { return loss_of(batch); }));
  }
  ++steps_done_;
  losses_.push_back(loss);
  return loss;
}

double LmTraining::mean_loss(Rng& numbers) const {
  const NoGradient nothing_recorded;
  double total = 0;
  for (i64 i = 0; i < recipe_.estimate_batches; ++i) {
    const TextBatch batch = random_blocks(data_.validation, recipe_.batch, recipe_.model.max_len, numbers);
    nn::Pass pass = nn::Pass::inference();
    total += cross_entropy(model_(batch.ids, pass), batch.next).item();
  }
  return total / static_cast<double>(recipe_.estimate_batches);
}

double LmTraining::estimate() { return mean_loss(judged_); }

double LmTraining::validation_loss() const {
  const NoGradient nothing_recorded;
  const i64 block = recipe_.model.max_len, count = data_.validation.count() - 1;  // characters that follow another
  const i64 at_once = std::max<i64>(1, 4096 / block);
  double total = 0;
  for (i64 begin = 0; begin < count;) {
    const i64 whole = std::min(at_once, (count - begin) / block), length = whole > 0 ? block : count - begin;
    const TextBatch batch = blocks_from(data_.validation, begin, std::max<i64>(1, whole), length);
    nn::Pass pass = nn::Pass::inference();
    total += cross_entropy(model_(batch.ids, pass), batch.next, {.reduction = Reduction::sum}).item();
    begin += batch.ids.count();
  }
  return total / static_cast<double>(count);
}

double LmTraining::measure() {
  Rng blocks = blocks_, judged = judged_;
  const TextBatch batch = random_blocks(data_.training, recipe_.batch, recipe_.model.max_len, blocks);
  const auto pass = [&] { backward(loss_of(batch)); };
  pass();  // the first pass pays for memory and threads
  const double step = seconds_of(pass);
  adam_.clear_gradients();
  const double estimates = seconds_of([&] { mean_loss(judged); }) *
                           static_cast<double>((recipe_.steps - steps_done_) / recipe_.estimate_every);
  const double forward = step / 3 / static_cast<double>(tokens_per_step());  // backward is twice as much as forward
  return step * static_cast<double>(recipe_.steps - steps_done_) + estimates +
         forward * static_cast<double>(data_.validation.count());
}

std::string LmTraining::hash() const {
  Fingerprint fingerprint;
  for (double loss : losses_) fingerprint.add(loss);
  for (const NamedParameter& p : adam_.parameters()) fingerprint.add(p.value.value());
  for (const auto& [name, tensor] : adam_.state()) fingerprint.add(tensor);
  return fingerprint.hex();
}

}  // namespace orrery
