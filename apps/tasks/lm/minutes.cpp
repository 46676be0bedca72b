// Chapter 9. `orrery lm train --minutes M`: the table of models, the machine's speed, and the deadline.
#include "apps/tasks/lm/minutes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "apps/program/stopwatch.h"

namespace orrery {
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
constexpr double for_evaluations = 0.05;  // of the time, at most

LmRecipe recipe_of(const Plan& plan, LmRecipe recipe) {
  nn::GptConfig& model = recipe.model;
  model.num_layers = plan.layers;
  model.layer.num_heads = plan.heads;
  model.max_len = plan.block;
  model.layer.d_model = plan.d_model;
  model.layer.d_ff = 4 * plan.d_model;
  model.layer.dropout = plan.dropout;
  model.rotary = model.query_key_norm = true;
  recipe.batch = plan.batch;
  recipe.optimizer = OptimizerKind::muon;
  recipe.schedule = Schedule::constant;
  recipe.rate = plan.rate;
  recipe.cooldown = Deadline::cooldown;
  recipe.warmup = 0;
  recipe.average = 0;
  recipe.weight_decay = 0.1;
  return recipe;
}

// Seconds of a step, of an evaluation's batch, and of what follows after the last step: the whole validation text is
// read up to twice, and a sample is written. Backward takes twice as long as forward.
struct Times {
  double step, batch, afterwards;
};
Times times_of(const LmRecipe& recipe, const TextData& data, const StepSeconds& step_seconds) {
  const double step = step_seconds(recipe);
  const double of_token = step / 3 / static_cast<double>(recipe.batch * recipe.model.max_len);
  return {step, step / 3, 1 + 2 * of_token * static_cast<double>(data.validation.count())};
}

double parameters_of(LmRecipe recipe, const TextData& data) {
  recipe.model.vocab_size = data.tokenizer.size();
  return static_cast<double>(recipe.model.parameter_count());
}

// Seconds of a step: the shorter of two measurements. If one took far longer than the other, the machine slept, and
// that time is added to `slept`. A pause of a few seconds is no sleep: the first measurement may wait for a disk.
double measured_twice(const LmRecipe& recipe, const StepSeconds& step_seconds, const Clock& clock, double& slept) {
  constexpr double far_longer = 10, shortest_sleep = 5;
  std::array<double, 2> step{}, took{};
  for (size_t i = 0; i < step.size(); ++i) {
    const double begin = clock();
    step[i] = step_seconds(recipe);
    took[i] = clock() - begin;
  }
  const auto [shorter, longer] = std::minmax(took[0], took[1]);
  if (longer > far_longer * shorter && longer - shorter > shortest_sleep) slept += longer - shorter;
  return std::min(step[0], step[1]);
}

bool fits(const Plan& plan, const TextData& data) {
  return data.validation.count() > plan.block && data.training.count() >= 2 * plan.block;
}

}  // namespace

std::string Choice::text() const {
  std::ostringstream text;
  text << recipe.model.num_layers << " layers of width " << recipe.model.layer.d_model << ", blocks of "
       << recipe.model.max_len << ", " << recipe.batch << " in a batch, rate " << recipe.rate << ", dropout "
       << recipe.model.layer.dropout << ", rotary positions, normalised queries and keys";
  return text.str();
}

double measured_step(const LmRecipe& recipe, const TextData& data) {
  LmTask task(recipe, data);
  return Trainer(task).seconds_of_step();
}

Choice choose_for(double seconds, const TextData& data, const LmRecipe& recipe, const StepSeconds& once,
                  const Clock& clock) {
  const double begin = clock();
  double slept = 0;
  const StepSeconds step_seconds = [&](const LmRecipe& tried) { return measured_twice(tried, once, clock, slept); };
  const LmRecipe smallest = recipe_of(plans[0], recipe);
  Times times = times_of(smallest, data, step_seconds);
  const double work = parameters_of(smallest, data) * static_cast<double>(smallest.batch * smallest.model.max_len);
  const double possible = seconds / times.step * work;
  Choice choice{.recipe = smallest};
  for (const Plan& plan : plans)
    if (possible >= plan.least_work && fits(plan, data)) choice.recipe = recipe_of(plan, recipe);
  if (choice.recipe.model.layer.d_model != smallest.model.layer.d_model)
    times = times_of(choice.recipe, data, step_seconds);
  const double all_batches = for_evaluations * seconds / times.batch;
  const i64 batches = std::clamp<i64>(std::llround(all_batches / evaluations), 1, recipe.estimate_batches);
  const double evaluating = static_cast<double>(evaluations * batches) * times.batch;
  const double left = seconds - (clock() - begin - slept) - times.afterwards - evaluating;
  check(left > times.step, "lm", "--minutes leaves no time to train: of ", std::llround(seconds),
        " s, measuring, evaluations and the end of the training take ", std::llround(seconds - left), " s");
  choice.afterwards = times.afterwards;
  choice.slept = slept;
  LmRecipe& chosen = choice.recipe;
  chosen.steps = std::max<i64>(evaluations, std::llround(left / times.step));
  const double tokens = static_cast<double>(chosen.steps * chosen.batch * chosen.model.max_len);
  if (tokens <= most_times_without_dropout * static_cast<double>(data.training.count()))
    chosen.model.layer.dropout = 0;  // a text that is new to the model cannot be learned by heart
  chosen.warmup = std::min<i64>(50, chosen.steps / 10);
  chosen.evaluate_every = chosen.steps / evaluations;
  chosen.estimate_batches = batches;
  return choice;
}

}  // namespace orrery
