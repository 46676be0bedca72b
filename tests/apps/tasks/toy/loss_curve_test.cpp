// Chapter 0. The curve of a training: means over equal numbers of steps, and the two losses beside it.
#include "apps/tasks/toy/loss_curve.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

using namespace orrery;

TEST_CASE("the smallest loss is that of a model that says the smoothed target") {
  CHECK(least_loss(16, 0) == 0);
  Tensor best = full({1, 5}, std::log(0.02), f64);
  best(0, 3) = std::log(0.92);
  const Variable loss = cross_entropy(constant(best), Tensor::of<i32>({1}, {3}), {.label_smoothing = 0.1});
  CHECK(least_loss(5, 0.1) == doctest::Approx(loss.item()).epsilon(1e-12));
}

TEST_CASE("at most 120 points, each the mean of its steps, the last of what is left") {
  const ToyRecipe recipe;
  std::vector<StepResult> steps;
  for (int i = 1; i <= 121; ++i) steps.push_back({.loss = static_cast<double>(i), .accuracy = 0.5});
  const LossFigure figure = loss_curve(recipe, steps);
  CHECK(figure.task == "reverse");
  CHECK(figure.steps == 121);
  CHECK(figure.every == 2);
  CHECK(figure.guess == doctest::Approx(std::log(16.0)));
  REQUIRE(figure.loss.size() == 61);
  CHECK(figure.loss[0] == 1.5);
  CHECK(figure.loss[60] == 121);
  CHECK(figure.accuracy[60] == 0.5);
  CHECK(loss_curve(recipe, {{.loss = 1, .accuracy = 0}}).loss.size() == 1);
}
