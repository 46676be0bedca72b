// Chapter 9. How a model is trained, whatever the model and the task: optimiser, schedule, averages, evaluations.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "optim/optimizer.h"

namespace orrery {

enum class OptimizerKind { adam, adamw, sgd, muon };
enum class Schedule { constant, noam, inverse_sqrt, cosine };
/// The names of their values, in their order.
constexpr std::array<std::string_view, 4> names(OptimizerKind) { return {"adam", "adamw", "sgd", "muon"}; }
constexpr std::array<std::string_view, 4> names(Schedule) { return {"constant", "noam", "inverse_sqrt", "cosine"}; }

/// Everything that decides how a training runs, except model and data.
struct TrainingRecipe {
  /// Stands for a number that the program computes before it trains. Only `warmup` and `evaluate_every` may be this.
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
  i64 patience = 0;        ///< evaluations without a lowest loss after which the training ends; 0: all steps
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

/// The names of the fields that its JSON has.
std::vector<std::string> field_names(const TrainingRecipe& recipe);
/// Every field except `seed`, `minutes` and `width` as JSON, and back. Errors: text that is not a JSON object, unknown
/// fields, values of a wrong type, and those of `validate`.
std::string to_json(const TrainingRecipe& recipe);
TrainingRecipe training_recipe(const std::string& json);

/// How many numbers a training keeps for each parameter: itself, what the optimiser remembers of it, the best so far,
/// and averages. The gradient is one more.
i64 numbers_for_each_parameter(const TrainingRecipe& recipe);

/// The recipe's optimiser of these parameters.
std::unique_ptr<optim::Optimizer> make_optimizer(const TrainingRecipe& recipe, const Parameters& parameters);

}  // namespace orrery
