// Chapter 9. A training that ends in a given time, whatever the machine's speed.
//
// The rate stays constant at first, and falls to 0 in the last part (Hägele et al. 2024, "Scaling laws and compute-
// optimal training beyond fixed training durations", arXiv 2405.18392). How many steps that part has is settled when it
// begins, from the speed of the steps before it. So a wrong guess in the first seconds does no harm, and the training
// is the same as one with that number of steps from the start.
#pragma once

#include "apps/program/progress.h"
#include "apps/training/trainer.h"

namespace orrery {

/// Ends a training in time, also on a machine that sleeps meanwhile: what it sleeps counts as time, and not as speed.
class Deadline {
 public:
  static constexpr double cooldown = 0.6;  ///< the part of the time in which the rate falls
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
