// Chapter 9. `orrery lm train --minutes M`: which model, which batch and how many steps for the time that there is.
//
// In a given time, a larger model reads fewer tokens. Too small a model has learned all it can, and too large a one has
// hardly begun; in between, parameters and tokens grow together (Hoffmann et al. 2022, "Training compute-optimal large
// language models", arXiv 2203.15556). So the first seconds measure this machine's speed, in parameters times tokens
// for each second. A table says which model is best for the work that fits into the time.
//
// The rate stays constant at first, and falls to 0 in the last part (Hägele et al. 2024, "Scaling laws and compute-
// optimal training beyond fixed training durations", arXiv 2405.18392). How many steps that part has is settled when it
// begins, from the speed of the steps before it. So a wrong guess in the first seconds does no harm, and the training
// is the same as one with that number of steps from the start.
#pragma once

#include <functional>
#include <string>

#include "apps/program/progress.h"
#include "apps/tasks/lm/training.h"

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

/// Ends a training in time, also on a machine that sleeps meanwhile: what it sleeps counts as time, and not as speed.
class Deadline {
 public:
  /// The last step is to end when `clock` says `end`, in seconds.
  Deadline(double end, Clock clock)
      : clock_(std::move(clock)), begin_(clock_()), end_(end), last_(begin_), halfway_(begin_) {}
  /// Call it after every step. Plans further steps until the rate begins to fall, and then settles how many are left.
  /// Returns true once, when it settles that.
  bool settles(Trainer& trainer);
  double seconds_left() const { return end_ - clock_(); }
  /// Whether the time is over before the last step, because the machine slept while the rate fell. How many steps are
  /// left was settled then.
  bool overslept() const { return slept_in_fall_ && seconds_left() <= 0; }

 private:
  double slept_until(double now);

  Clock clock_;
  double begin_, end_;
  double last_;           // end of the last step
  double awake_ = 0;      // seconds of the steps during which the machine did not sleep
  i64 steps_awake_ = 0;   // how many these are
  double slept_ = 0;      // seconds since `halfway_`
  double halfway_;        // end of the last step in the first half of the constant rate; speed is measured from there
  i64 halfway_done_ = 0;  // the steps made by then
  bool settled_ = false, slept_in_fall_ = false;
};

}  // namespace orrery
