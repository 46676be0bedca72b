// Chapter 9. --minutes: what suits a time; its speed, and how many steps are left.
#include "apps/training/deadline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iomanip>
#include <sstream>

namespace orrery {

// If one measurement took far longer than the other, the machine slept, and that time is added to `slept`. A pause of a
// few seconds is no sleep: the first measurement may wait for a disk.
double TimeBudget::step() {
  constexpr double far_longer = 10, shortest_sleep = 5;
  std::array<double, 2> step{}, took{};
  for (size_t i = 0; i < step.size(); ++i) {
    const double begin = clock_();
    step[i] = step_seconds_();
    took[i] = clock_() - begin;
  }
  const auto [shorter, longer] = std::minmax(took[0], took[1]);
  if (longer > far_longer * shorter && longer - shorter > shortest_sleep) slept += longer - shorter;
  return std::min(step[0], step[1]);
}

void TimeBudget::let_rate_fall(TrainingRecipe& recipe, double rate) {
  recipe.schedule = Schedule::constant;
  recipe.rate = rate;
  recipe.cooldown = Deadline::cooldown;
  recipe.warmup = 0;
  recipe.average = 0;
  recipe.average_last = recipe.patience = 0;
}

void TimeBudget::follow(const KnownTraining& known, TrainingRecipe& recipe) {
  recipe.optimizer = known.optimizer;
  recipe.micro_batches = micro_batches;
  let_rate_fall(recipe, known.rate);
  warmup_ = known.warmup;
  const double parts = static_cast<double>(micro_batches);
  const i64 largest = std::max(known.least_batch, known.good_batch / micro_batches);
  known.batch = largest;
  const double worth = known.items * known.epochs;
  double best = 0;
  for (int i = 0; i < 2; ++i) {  // again with the batch that was found, since a smaller one takes longer for an item
    const double read = std::min(seconds_ / step() * static_cast<double>(known.batch) * parts, worth);
    best = std::sqrt(read * static_cast<double>(known.good_batch) / static_cast<double>(known.steps));
    known.batch = std::clamp<i64>(std::llround(best / parts), known.least_batch, largest);
  }
  batch_ = static_cast<double>(known.batch) * parts;
  recipe.rate *= std::sqrt(batch_ / best);
  if (known.epochs > 1) items_ = known.items;
  if (std::isfinite(worth)) most_steps = std::max(always_worth, static_cast<i64>(std::llround(worth / batch_)));
  std::ostringstream text;
  text << "batches of " << known.batch * micro_batches << ", rate " << recipe.rate;
  chosen = text.str();
}

void TimeBudget::plan(TrainingRecipe& recipe, const Times& times, i64 evaluations) {
  const double evaluating = static_cast<double>(evaluations) * times.evaluation;
  const double left = seconds_ - (clock_() - begin_ - slept) - times.afterwards - evaluating;
  constexpr i64 least_steps = 2;  // the rate falls after the first
  check(left > least_steps * times.step, program_, "--minutes leaves no time to train: of ", std::llround(seconds_),
        " s, measuring, evaluations and the end of the training take ", std::llround(seconds_ - left), " s");
  afterwards = times.afterwards;
  recipe.steps = std::max({least_steps, evaluations, i64{std::llround(left / times.step)}});
  if (most_steps > 0) recipe.steps = std::min(recipe.steps, most_steps);
  recipe.warmup = std::min(warmup_, recipe.steps / 10);
  if (evaluations > 0) recipe.evaluate_every = std::max<i64>(1, recipe.steps / evaluations);
  std::ostringstream text;
  text << (chosen.empty() ? "" : chosen + ", ") << recipe.steps << " steps";
  const double epochs = static_cast<double>(recipe.steps) * batch_ / items_;
  if (std::isfinite(items_))
    text << ", " << std::fixed << std::setprecision(epochs < 10 ? 1 : 0) << epochs << " epochs";
  chosen = text.str();
}

// Seconds for which the machine slept during the step that ends now: all but the usual time, if it took far longer than
// other steps, and too large a part of the whole time to be an evaluation.
double Deadline::slept_until(double now) {
  constexpr double far_longer = 10, large_part = 0.05;
  const double took = now - last_, usual = steps_awake_ > 0 ? awake_ / static_cast<double>(steps_awake_) : took;
  last_ = now;
  if (took > far_longer * usual && took > large_part * (end_ - begin_)) return took - usual;
  awake_ += took;
  ++steps_awake_;
  return 0;
}

bool Deadline::settles(Trainer& trainer) {
  const i64 done = trainer.steps_done();
  const double now = clock_(), slept = slept_until(now);
  if (settled_ && slept > 0) slept_in_fall_ = true;
  if (settled_) return false;
  slept_ += slept;
  const double flat = (1 - cooldown) * (end_ - begin_);
  if (now < begin_ + flat / 2) {
    halfway_ = now;
    halfway_done_ = done;
    slept_ = 0;
  }
  const i64 planned = trainer.recipe().steps;
  const bool are_made = done == trainer.recipe().steps_before_cooldown();
  if (now < begin_ + flat && !(are_made && planned == most_steps_)) {
    // The machine is faster than expected.
    if (are_made) trainer.plan(most_steps_ > 0 ? std::min(2 * planned, most_steps_) : 2 * planned, cooldown);
    return false;
  }
  settled_ = true;
  const double speed = static_cast<double>(done - halfway_done_) / (now - halfway_ - slept_);
  const i64 worth = most_steps_ > 0 ? most_steps_ - done : std::numeric_limits<i64>::max();
  // At the most steps the speed may not be known yet: then there is time enough.
  const i64 left = done == halfway_done_ ? worth : std::clamp<i64>(std::llround(speed * (end_ - now)), 1, worth);
  trainer.plan(done + left, static_cast<double>(left) / static_cast<double>(done + left));
  return true;
}

}  // namespace orrery
