// Chapter 9. A training's recipe: rates, optimiser, and its JSON.
#include "apps/training/recipe.h"

#include <cmath>

#include "nn/models/config_json.h"
#include "optim/adam.h"
#include "optim/muon.h"
#include "optim/schedule.h"
#include "optim/sgd.h"

namespace orrery {

std::vector<std::string> field_names(TrainingRecipe recipe) {
  std::vector<std::string> all;
  for_each_field(recipe, [&](const nn::Field& field, const auto&) { all.push_back(field.name); });
  return all;
}

std::string to_json(const TrainingRecipe& recipe) { return nn::config_json::text_of(recipe); }

TrainingRecipe training_recipe(const std::string& json) {
  return nn::config_json::config_of<TrainingRecipe>(json, "training recipe");
}

void TrainingRecipe::validate() const {
  using nn::config_json::check_positive;
  constexpr std::string_view operation = "training recipe";
  check_positive(operation, "steps", steps);
  check_positive(operation, "micro_batches", micro_batches);
  nn::config_json::check_probability(operation, "average", average);
  const auto not_negative = [&](std::string_view name, auto value) {
    check(value >= 0, operation, name, " must be 0 or more, not ", value);
  };
  not_negative("warmup", warmup);
  not_negative("evaluate_every", evaluate_every);
  not_negative("patience", patience);
  not_negative("average_last", average_last);
  not_negative("clip", clip);
  check(cooldown >= 0 && cooldown <= 1, operation, "cooldown must be from 0 to 1, not ", cooldown);
  check(average == 0 || average_last == 0, operation, "average (", average, ") and average_last (", average_last,
        ") exclude each other: set one of them to 0");
  check(evaluate_every > 0 || (patience == 0 && average_last == 0), operation,
        "patience and average_last need evaluate_every");
  check(schedule != Schedule::cosine || warmup < steps, operation, "warmup (", warmup, ") must be below steps, ",
        steps);
  check(schedule == Schedule::constant || schedule == Schedule::cosine || warmup > 0, operation, "schedule ",
        names(schedule)[static_cast<size_t>(schedule)], " needs a warmup of at least 1");
}

i64 TrainingRecipe::steps_before_cooldown() const {
  return steps - static_cast<i64>(std::lround(cooldown * static_cast<double>(steps)));
}

double TrainingRecipe::rate_of(i64 step) const {
  const double fall = optim::linear_cooldown(step, steps, steps_before_cooldown());
  switch (schedule) {
    case Schedule::constant:
      return fall * (step < warmup ? rate * static_cast<double>(step) / static_cast<double>(warmup) : rate);
    case Schedule::noam: return rate * optim::noam(step, width, warmup) * fall;
    case Schedule::inverse_sqrt: return fall * optim::inverse_sqrt(step, rate, warmup, first_rate);
    case Schedule::cosine: return fall * optim::warmup_cosine(step, rate, warmup, steps, last_rate);
  }
  fail("training recipe", "unknown schedule");
}

i64 numbers_for_each_parameter(const TrainingRecipe& recipe) {
  i64 remembered = 2;  // at most: the two moments of Adam
  if (recipe.optimizer == OptimizerKind::sgd) remembered = recipe.momentum > 0 ? 1 : 0;
  return 1 + remembered + (recipe.evaluate_every > 0 ? 1 : 0) + (recipe.average > 0 ? 1 : 0) + recipe.average_last;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const TrainingRecipe& recipe, const Parameters& parameters) {
  const optim::ParameterGroups groups = recipe.weight_decay > 0 ? optim::decay_matrices(parameters, recipe.weight_decay)
                                                                : optim::ParameterGroups(parameters);
  switch (recipe.optimizer) {
    case OptimizerKind::adam:
      return std::make_unique<optim::Adam>(
          groups,
          optim::AdamOptions{
              .beta1 = recipe.beta1, .beta2 = recipe.beta2, .eps = recipe.eps, .weight_decay = recipe.weight_decay});
    case OptimizerKind::adamw:
      return std::make_unique<optim::AdamW>(
          groups,
          optim::AdamWOptions{
              .beta1 = recipe.beta1, .beta2 = recipe.beta2, .eps = recipe.eps, .weight_decay = recipe.weight_decay});
    case OptimizerKind::sgd:
      return std::make_unique<optim::SGD>(
          groups, optim::SGDOptions{.momentum = recipe.momentum, .weight_decay = recipe.weight_decay});
    case OptimizerKind::muon:
      return std::make_unique<optim::Muon>(groups, optim::MuonOptions{.momentum = recipe.muon_momentum,
                                                                      .beta1 = recipe.beta1,
                                                                      .beta2 = recipe.beta2,
                                                                      .eps = recipe.eps,
                                                                      .weight_decay = recipe.weight_decay});
  }
  fail("training recipe", "unknown optimizer");
}

}  // namespace orrery
