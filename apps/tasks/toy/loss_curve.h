// Chapter 0. What the steps of a training did, as numbers to draw.
#pragma once

#include "apps/show/figure/figures.h"
#include "apps/tasks/toy/training.h"

namespace orrery {

/// The smallest cross entropy that targets of `classes` classes with label smoothing allow: the entropy of a smoothed
/// target. 0 without smoothing.
double least_loss(i64 classes, double smoothing);

/// The means of loss and accuracy over equal numbers of steps, at most 120 of them.
LossFigure loss_curve(const ToyRecipe& recipe, const std::vector<StepResult>& steps);

}  // namespace orrery
