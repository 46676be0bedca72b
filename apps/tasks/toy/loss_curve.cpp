// Chapter 0. Means over the steps of a training, and the two losses they lie between.
#include "apps/tasks/toy/loss_curve.h"

#include <algorithm>
#include <cmath>

namespace orrery {

double least_loss(i64 classes, double smoothing) {
  const double K = static_cast<double>(classes), other = smoothing / K, right = 1 - smoothing + other;
  const auto term = [](double p) { return p > 0 ? -p * std::log(p) : 0; };
  return term(right) + (K - 1) * term(other);
}

LossFigure loss_curve(const ToyRecipe& recipe, const std::vector<StepResult>& steps) {
  constexpr size_t most_points = 120;
  const size_t every = (steps.size() + most_points - 1) / most_points;
  const i64 classes = recipe.task.vocab_size();
  LossFigure figure{.task = recipe.task.name,
                    .steps = static_cast<int>(steps.size()),
                    .every = static_cast<int>(every),
                    .guess = std::log(static_cast<double>(classes)),
                    .least = least_loss(classes, recipe.smoothing),
                    .loss = {},
                    .accuracy = {}};
  for (size_t begin = 0; begin < steps.size(); begin += every) {
    const size_t end = std::min(steps.size(), begin + every);
    double loss = 0, accuracy = 0;
    for (size_t i = begin; i < end; ++i) {
      loss += steps[i].loss;
      accuracy += steps[i].accuracy.value_or(0);
    }
    figure.loss.push_back(loss / static_cast<double>(end - begin));
    figure.accuracy.push_back(accuracy / static_cast<double>(end - begin));
  }
  return figure;
}

}  // namespace orrery
