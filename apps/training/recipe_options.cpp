// Chapter 9. The options for a training's recipe, with their ranges.
#include "apps/training/recipe_options.h"

#include <algorithm>
#include <cctype>

#include "core/error.h"

namespace orrery {
namespace {

constexpr i64 most_steps = 100'000'000;

void add_optimizer_options(CLI::App& command, TrainingRecipe& recipe) {
  begin_group(command, "Optimiser");
  add_choice(command, "--optimizer", recipe.optimizer, "What turns gradients into steps");
  add_number(command, "--beta1", recipe.beta1, 0, 0.999999, "Adam: decay of its mean of the gradients");
  add_number(command, "--beta2", recipe.beta2, 0, 0.999999, "Adam: decay of its mean of their squares");
  add_number(command, "--eps", recipe.eps, 1e-30, 1, "Adam: added to the square root, against a division by 0");
  add_number(command, "--momentum", recipe.momentum, 0, 0.999999, "SGD: decay of its sum of gradients");
  add_number(command, "--muon-momentum", recipe.muon_momentum, 0, 0.999999, "Muon: decay of its sum of gradients");
  add_number(command, "--weight-decay", recipe.weight_decay, 0, 100, "Weight decay, only of matrices");
  add_number(command, "--clip", recipe.clip, 0, 1e6, "Largest norm of the gradient; 0 does not clip");
}

// Adds an option for a number of steps. `automatic` says what follows if it is not given; "": its default.
void add_steps(CLI::App& command, const std::string& name, i64& value, const std::string& description,
               const std::string& automatic) {
  const std::string otherwise = automatic.empty() ? "" : "; if not given, " + automatic;
  CLI::Option* option = add_whole_number(command, name, value, 0, most_steps, description + otherwise);
  if (!automatic.empty()) show_default(option, "");
}

void add_rate_options(CLI::App& command, TrainingRecipe& recipe, const AutomaticValues& automatic) {
  begin_group(command, "Learning rate");
  add_choice(command, "--schedule", recipe.schedule, "How the rate changes");
  add_number(command, "--rate", recipe.rate, 0, 100, "Largest learning rate; with noam, the factor of the schedule");
  add_number(command, "--first-rate", recipe.first_rate, 0, 100, "Rate at which the warm-up of inverse_sqrt begins");
  add_number(command, "--last-rate", recipe.last_rate, 0, 100, "Rate at which the cosine ends");
  add_steps(command, "--warmup", recipe.warmup, "First steps, in which the rate rises", automatic.warmup);
  add_number(command, "--cooldown", recipe.cooldown, 0, 1,
             "Share of the steps, at the end, in which the rate falls to 0");
}

void add_evaluation_options(CLI::App& command, TrainingRecipe& recipe, const AutomaticValues& automatic) {
  begin_group(command, evaluation_group);
  add_steps(command, "--evaluate-every", recipe.evaluate_every,
            "Steps between evaluations, after each of which the best model is saved; 0: no evaluations",
            automatic.evaluate_every);
  add_number(command, "--average", recipe.average, 0, 0.999999,
             "Evaluate and save an exponential mean of the parameters over the steps, with this decay; 0: no mean");
  add_whole_number(command, "--average-last", recipe.average_last, 0, 1000,
                   "Evaluate and save the mean of the parameters of this many latest evaluations; 0: no mean");
  add_whole_number(command, "--patience", recipe.patience, 0, 1000000,
                   "End after this many evaluations in a row without a new lowest loss; 0: make all steps");
}

// "average_last" in a message becomes "--average-last"; other words stay.
std::string with_option_names(const std::string& message, const std::vector<std::string>& fields) {
  const auto in_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  std::string result;
  for (auto at = message.begin(); at != message.end();) {
    const auto end = in_word(*at) ? std::find_if_not(at, message.end(), in_word) : at + 1;
    std::string word(at, end);
    if (std::find(fields.begin(), fields.end(), word) != fields.end()) {
      std::replace(word.begin(), word.end(), '_', '-');
      word = "--" + word;
    }
    result += word;
    at = end;
  }
  return result;
}

}  // namespace

void add_recipe_options(CLI::App& command, TrainingRecipe& recipe, const AutomaticValues& automatic) {
  begin_group(command, training_group);
  add_whole_number(command, "--steps", recipe.steps, 1, most_steps, "Updates of the parameters");
  add_whole_number(command, "--micro-batches", recipe.micro_batches, 1, 65536,
                   "Batches whose gradients are added up for one step");
  add_seed(command, recipe.seed);
  add_optimizer_options(command, recipe);
  add_rate_options(command, recipe, automatic);
  add_evaluation_options(command, recipe, automatic);
}

void check_recipe_options(const TrainingRecipe& recipe) {
  try {
    recipe.validate();
  } catch (const Error& error) { usage_error("recipe", with_option_names(error.rule(), field_names(recipe))); }
}

}  // namespace orrery
