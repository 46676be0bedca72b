// Chapter 9. `orrery lm train --minutes M`: which model, which batch and how many steps for the time that there is.
//
// In a given time, a larger model reads fewer tokens. Too small a model has learned all it can, and too large a one has
// hardly begun; in between, parameters and tokens grow together (Hoffmann et al. 2022, "Training compute-optimal large
// language models", arXiv 2203.15556). So the first seconds measure how many parameters times tokens this machine works
// off in a second, and a table says which model is best for how much of it (apps/lm/README.md has the trials).
//
// The rate stays constant at first, and falls to 0 in the last part (Hägele et al. 2024, "Scaling laws and compute-
// optimal training beyond fixed training durations", arXiv 2405.18392). How many steps that part has is settled when it
// begins, from the speed so far. So the training ends in time although the machine may be faster or slower than it was
// in its first seconds, and the training is the same as one with that number of steps from the start.
// Serves: nn/models/gpt.h
#pragma once

#include "apps/lm/training.h"
#include "apps/program/progress.h"

namespace orrery {

/// Changes `recipe`'s model, batch, rates and steps into those for a training of so many seconds on this machine, which
/// is tried for a few steps.
void choose_for(double seconds, const TextData& data, LmRecipe& recipe);

/// Ends a training in time.
class Deadline {
 public:
  /// The last step is to end when `clock` says `end`, in seconds.
  Deadline(double end, Clock clock) : clock_(std::move(clock)), begin_(clock_()), end_(end) {}
  /// Call it after every step. Returns true once: when the rate begins to fall, after which the number of steps is
  /// settled.
  bool settles(Trainer& trainer);

 private:
  Clock clock_;
  double begin_, end_;
  bool settled_ = false;
};

}  // namespace orrery
