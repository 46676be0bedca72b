// Chapter 9. How a model is trained, whatever the model and the task: optimiser, schedule, averages, evaluations.
//
// The random numbers of a training, by purpose, so that drawing more for one changes no other.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "nn/models/fields.h"
#include "optim/optimizer.h"

namespace orrery {

enum class OptimizerKind { adam, adamw, sgd, muon };
enum class Schedule { constant, noam, inverse_sqrt, cosine };
/// The names of their values, in their order.
constexpr std::array<std::string_view, 4> names(OptimizerKind) { return {"adam", "adamw", "sgd", "muon"}; }
constexpr std::array<std::string_view, 4> names(Schedule) { return {"constant", "noam", "inverse_sqrt", "cosine"}; }

/// Everything that decides how a training runs, except model and data.
struct TrainingRecipe {
  /// Stands for a number that the program computes before it trains. Only `steps`, `rate`, `warmup` and
  /// `evaluate_every` may be this.
  static constexpr i64 automatic = -1;

  i64 steps = 3000;
  i64 micro_batches = 1;  ///< batches whose gradients make one step
  OptimizerKind optimizer = OptimizerKind::adam;
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;  ///< of Adam, AdamW, and Muon where it moves as AdamW does
  double momentum = 0;                           ///< of SGD
  double muon_momentum = 0.95;
  double weight_decay = 0;  ///< of matrices
  double clip = 1;          ///< largest norm of the gradient; 0 does not clip
  Schedule schedule = Schedule::noam;
  double rate = 1;         ///< the peak of the rate; of Noam's schedule the factor
  double first_rate = 0;   ///< where the warm-up of inverse_sqrt begins
  double last_rate = 0;    ///< where the cosine ends
  i64 warmup = 1000;       ///< steps in which the rate rises
  double cooldown = 0;     ///< share of the steps, the last ones, in which the rate falls to 0
  double average = 0;      ///< decay of the exponential mean of the parameters that is evaluated and saved; 0: none
  i64 average_last = 0;    ///< evaluate and save the mean of the parameters of this many latest evaluations; 0: none
  i64 evaluate_every = 0;  ///< steps; 0: never
  i64 patience = 0;        ///< evaluations without a better score after which the training ends; 0: all steps
  double minutes = 0;      ///< after which the training stops, as after Ctrl-C; 0: no limit
  i64 seed = 1;
  i64 width = 0;  ///< d_model, which Noam's schedule needs; it follows from the model, and a task sets it

  /// The steps after which the cooldown begins.
  i64 steps_before_cooldown() const;
  /// The learning rate of a step, counted from 1.
  double rate_of(i64 step) const;
  /// Errors: numbers with which no training is possible.
  void validate() const;
};

/// What is said of a field of the recipe: its name in files, and its option (apps/training/options.h).
struct RecipeField : nn::Field {
  RecipeField(const char* name, const char* group, double least, double most, const char* help)
      : nn::Field(name, nn::Rule::any, 0, help), group(group), least(least), most(most) {}
  const char* group;
  double least, most;
};
inline constexpr const char *training_group = "Training", *optimiser_group = "Optimiser", *rate_group = "Learning rate",
                            *evaluation_group = "Evaluation";

/// Calls field(about, value) for every field that decides what is trained, except `seed`, which has an option of its
/// own, and `width` (nn/models/fields.h).
template <class F> void for_each_field(TrainingRecipe& recipe, F&& field) {
  constexpr double many = 1e8, below_one = 0.999999;
  const auto add = [&](const char* name, auto& value, const char* group, double least, double most, const char* help) {
    field(RecipeField(name, group, least, most, help), value);
  };
  add("steps", recipe.steps, training_group, 1, many, "Updates of the parameters");
  add("micro_batches", recipe.micro_batches, training_group, 1, 65536,
      "Batches whose gradients are added up for one step");
  add("optimizer", recipe.optimizer, optimiser_group, 0, 0, "What turns gradients into steps");
  add("beta1", recipe.beta1, optimiser_group, 0, below_one, "Adam: decay of its mean of the gradients");
  add("beta2", recipe.beta2, optimiser_group, 0, below_one, "Adam: decay of its mean of their squares");
  add("eps", recipe.eps, optimiser_group, 1e-30, 1, "Adam: added to the square root, against a division by 0");
  add("momentum", recipe.momentum, optimiser_group, 0, below_one, "SGD: decay of its sum of gradients");
  add("muon_momentum", recipe.muon_momentum, optimiser_group, 0, below_one, "Muon: decay of its sum of gradients");
  add("weight_decay", recipe.weight_decay, optimiser_group, 0, 100, "Weight decay, only of matrices");
  add("clip", recipe.clip, optimiser_group, 0, 1e6, "Largest norm of the gradient; 0 does not clip");
  add("schedule", recipe.schedule, rate_group, 0, 0, "How the rate changes");
  add("rate", recipe.rate, rate_group, 0, 100, "Largest learning rate; with noam, the factor of the schedule");
  add("first_rate", recipe.first_rate, rate_group, 0, 100, "Rate at which the warm-up of inverse_sqrt begins");
  add("last_rate", recipe.last_rate, rate_group, 0, 100, "Rate at which the cosine ends");
  add("warmup", recipe.warmup, rate_group, 0, many, "First steps, in which the rate rises");
  add("cooldown", recipe.cooldown, rate_group, 0, 1, "Share of the steps, at the end, in which the rate falls to 0");
  add("evaluate_every", recipe.evaluate_every, evaluation_group, 0, many,
      "Steps between evaluations, after each of which the best model is saved; 0: no evaluations");
  add("average", recipe.average, evaluation_group, 0, below_one,
      "Evaluate and save an exponential mean of the parameters over the steps, with this decay; 0: no mean");
  add("average_last", recipe.average_last, evaluation_group, 0, 1000,
      "Evaluate and save the mean of the parameters of this many latest evaluations; 0: no mean");
  add("patience", recipe.patience, evaluation_group, 0, 1e6,
      "End after this many evaluations in a row without a better score; 0: make all steps");
}

/// The names of the fields that its JSON has.
std::vector<std::string> field_names(TrainingRecipe recipe);
/// Every field except `seed`, `minutes` and `width` as JSON, and back. Errors: text that is not a JSON object, unknown
/// fields, values of a wrong type, and those of `validate`.
std::string to_json(const TrainingRecipe& recipe);
TrainingRecipe training_recipe(const std::string& json);

/// How many numbers a training keeps for each parameter: itself, what the optimiser remembers of it, the best so far,
/// and averages. The gradient is one more.
i64 numbers_for_each_parameter(const TrainingRecipe& recipe);

/// The recipe's optimiser of these parameters.
std::unique_ptr<optim::Optimizer> make_optimizer(const TrainingRecipe& recipe, const Parameters& parameters);

/// What random numbers are drawn for: the initial weights, the batches to train on, what is held out to judge the model
/// by, and what a program draws besides (the sample of `lm`, the evaluations of `toy`). The values decide which numbers
/// are drawn, and so every result: new purposes get new values.
enum class Purpose : u64 { weights = 0, training = 1, held_out = 2, extra = 3 };

/// Random numbers of a seed for a purpose. Those of different purposes do not overlap as long as each draws fewer
/// than 2^40.
inline Rng random_numbers(i64 seed, Purpose purpose) {
  constexpr u64 stretch = u64{1} << 40;
  return Rng(static_cast<u64>(seed), static_cast<u64>(purpose) * stretch);
}

}  // namespace orrery
