// Chapter 9. `orrery lm train --minutes M`: the table of models, the machine's speed, and the deadline.
//
// Serves: nn/models/gpt.h
#include "apps/lm/minutes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/program/stopwatch.h"

namespace orrery {
namespace {

// A model and its batch, and the least work for which it is better than the one before: parameters times tokens.
struct Plan {
  double least_work;
  i64 layers, heads, d_model, block, batch;
  double rate, dropout;
};
constexpr std::array<Plan, 3> plans{
    {{0, 4, 4, 128, 64, 24, 0.012, 0}, {1e13, 4, 4, 192, 128, 24, 0.01, 0.1}, {1e14, 6, 6, 384, 128, 24, 0.006, 0.2}}};
constexpr double cooldown = 0.6;  // the part of the time in which the rate falls
constexpr i64 evaluations = 8;

LmRecipe recipe_of(const Plan& plan, LmRecipe recipe) {
  nn::GptConfig& model = recipe.model;
  model.num_layers = plan.layers, model.layer.num_heads = plan.heads, model.max_len = plan.block;
  model.layer.d_model = plan.d_model, model.layer.d_ff = 4 * plan.d_model, model.layer.dropout = plan.dropout;
  recipe.batch = plan.batch;
  recipe.optimizer = OptimizerKind::muon;
  recipe.schedule = Schedule::constant;
  recipe.rate = plan.rate, recipe.cooldown = cooldown, recipe.warmup = 0, recipe.average = 0;
  recipe.weight_decay = 0.1;
  return recipe;
}

// Seconds of a step of this recipe, from one after a first one that allocates memory.
double seconds_of_step(const LmRecipe& recipe, const TextData& data) {
  LmTask task(recipe, data);
  return Trainer(task, recipe, recipe.model.layer.d_model).seconds_of_step();
}

double parameters_of(LmRecipe recipe, const TextData& data) {
  recipe.model.vocab_size = data.tokenizer.size();
  return static_cast<double>(recipe.model.parameter_count());
}

}  // namespace

void choose_for(double seconds, const TextData& data, LmRecipe& recipe) {
  const Stopwatch watch;
  const auto work_of_step = [&](const LmRecipe& each) {
    return parameters_of(each, data) * static_cast<double>(each.batch * each.model.max_len);
  };
  const LmRecipe smallest = recipe_of(plans[0], recipe);
  const double speed = work_of_step(smallest) / seconds_of_step(smallest, data);
  LmRecipe chosen = smallest;
  for (const Plan& plan : plans)
    if (seconds * speed >= plan.least_work && data.validation.count() > plan.block) chosen = recipe_of(plan, recipe);
  const double left = std::max(1.0, seconds - watch.seconds());
  chosen.steps = std::max<i64>(evaluations, std::llround(left / seconds_of_step(chosen, data)));
  chosen.warmup = std::min<i64>(50, chosen.steps / 10);
  chosen.evaluate_every = std::max<i64>(1, chosen.steps / evaluations);
  recipe = chosen;
}

bool Deadline::settles(Trainer& trainer) {
  if (settled_) return false;
  const double now = clock_();
  const i64 done = trainer.steps_done(), flat = trainer.recipe().steps_before_cooldown();
  if (now < begin_ + (1 - cooldown) * (end_ - begin_) && done < flat) return false;
  settled_ = true;
  const double speed = static_cast<double>(done) / (now - begin_);
  trainer.fall_from_now(done + std::max<i64>(1, std::llround(speed * (end_ - now))));
  return true;
}

}  // namespace orrery
