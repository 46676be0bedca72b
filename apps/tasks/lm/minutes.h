// Chapter 9. `orrery lm train --minutes M`: which model, which batch and how many steps for the time that there is.
//
// In a given time, a larger model reads fewer tokens. Too small a model has learned all it can, and too large a one has
// hardly begun; in between, parameters and tokens grow together (Hoffmann et al. 2022, "Training compute-optimal large
// language models", arXiv 2203.15556). So the first seconds measure this machine's speed, in parameters times tokens
// for each second. A table says which model is best for the work that fits into the time.
//
// The rate stays constant at first, and falls to 0 in the last part: apps/training/deadline.h.
#pragma once

#include <functional>
#include <string>

#include "apps/program/progress.h"
#include "apps/tasks/lm/training.h"
#include "apps/training/deadline.h"

namespace orrery {

/// What --minutes has chosen.
struct Choice {
  LmRecipe recipe;
  double afterwards = 0;  ///< seconds that the training takes after its last step
  double slept = 0;       ///< seconds for which the machine slept meanwhile; they are not taken from the training

  /// "4 layers of width 128, ...".
  std::string text() const;
};
/// The seconds that a step of such a training takes.
using StepSeconds = std::function<double(const LmRecipe&)>;
/// The same, measured on this machine (Trainer::seconds_of_step).
double measured_step(const LmRecipe& recipe, const TextData& data);

/// `recipe` with a model, a batch, rates and steps for a training of this many seconds, on a machine of this speed. It
/// is measured twice, since the machine may sleep during one of the two. Error: what follows the last step takes longer
/// than that, so that no time is left to train.
Choice choose_for(double seconds, const TextData& data, const LmRecipe& recipe, const StepSeconds& step_seconds,
                  const Clock& clock = steady_seconds);

}  // namespace orrery
