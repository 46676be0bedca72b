// Chapter 9. --minutes: what suits a time, and a training that ends in it, whatever the machine's speed.
//
// `TimeBudget` chooses before the first step. A task says of one training that it went well, and others follow from it.
// With less to read in all, the best batch is smaller, about as the square root, so that few items still make many
// steps (Li et al. 2025, "Predictable Scale: Part I", arXiv 2503.04715, measure the power 0.57). With that batch the
// rate is that of the known training; with another one it changes as the square root of the batch. What was measured
// here: apps/tasks/translate/README.md.
//
// `Deadline` goes along. The rate stays constant at first, and falls to 0 in the last part (Hägele et al. 2024,
// "Scaling laws and compute-optimal training beyond fixed training durations", arXiv 2405.18392). How many steps that
// part has is settled when it begins, from the speed of the steps before it. So a wrong guess in the first seconds does
// no harm, and the training is the same as one with that number of steps from the start.
#pragma once

#include <functional>
#include <limits>
#include <string>

#include "apps/program/progress.h"
#include "apps/training/trainer.h"

namespace orrery {

/// A training that went well, from which --minutes chooses others of the task.
struct KnownTraining {
  static constexpr double endless = std::numeric_limits<double>::infinity();
  i64& batch;               ///< the size of a batch in the recipe, in items or tokens: --minutes changes it
  i64 good_batch, steps;    ///< its batch, which is also the largest that is chosen, and its steps
  double rate;              ///< its highest rate
  i64 warmup = 100;         ///< its steps until then; a tenth of all at most
  i64 least_batch = 1;      ///< a smaller one is slow, or not allowed
  double items = endless;   ///< of the text or the data to train with, in the unit of the batch
  double epochs = endless;  ///< so often they are read at most: more would be learned by heart
  OptimizerKind optimizer = OptimizerKind::adamw;
};

/// The time for a training, and what suits it.
class TimeBudget {
 public:
  /// Errors begin with `program`. `step_seconds` measures a step of the training as it is described at that moment.
  TimeBudget(std::string program, double seconds, std::function<double()> step_seconds, Clock clock = steady_seconds)
      : program_(std::move(program)),
        seconds_(seconds),
        step_seconds_(std::move(step_seconds)),
        clock_(std::move(clock)),
        begin_(clock_()) {}

  double seconds() const { return seconds_; }
  /// Seconds of a step: the shorter of two measurements, since the machine may sleep during one of them.
  double step();
  /// Chooses the batch, and the rates in their course, as they suit what can be read in the time.
  void follow(const KnownTraining& known, TrainingRecipe& recipe);
  /// A rate that stays constant and then falls, without averages, and no end before the last step.
  static void let_rate_fall(TrainingRecipe& recipe, double rate);
  /// Chooses the steps, and when to evaluate, from the seconds of a step, of one of the `evaluations`, and of what
  /// comes after the last step. Error: that leaves no time to train.
  struct Times {
    double step, evaluation = 0, afterwards = 0;
  };
  void plan(TrainingRecipe& recipe, const Times& times, i64 evaluations);

  std::string chosen{};   ///< in words: "batches of 512, ..."
  double afterwards = 0;  ///< seconds that the training takes after its last step
  double slept = 0;       ///< for which the machine slept meanwhile; they are not taken from the training
  i64 most_steps = 0;     ///< more are not worth it, even if there is time; 0: all are
  i64 micro_batches = 1;  ///< of a step, one for each rank; together they are a batch
  static constexpr double for_evaluations = 0.05;  ///< of the time, at most
  static constexpr i64 always_worth = 1000;        ///< steps, however few items there are

 private:
  std::string program_;
  double seconds_;
  std::function<double()> step_seconds_;
  Clock clock_;
  double begin_;
  i64 warmup_ = 50;
  double items_ = KnownTraining::endless, batch_ = 0;
};

/// Ends a training in time, also on a machine that sleeps meanwhile: what it sleeps counts as time, and not as speed.
class Deadline {
 public:
  static constexpr double cooldown = 0.6;  ///< the part of the time in which the rate falls
  /// The last step is to end when `clock` says `end`, in seconds; earlier if `most_steps`, unless 0, are made.
  Deadline(double end, Clock clock, i64 most_steps = 0)
      : clock_(std::move(clock)),
        begin_(clock_()),
        end_(end),
        last_(begin_),
        most_steps_(most_steps),
        halfway_(begin_) {}
  /// Call it after every step. Plans further steps until the rate begins to fall, and then settles how many are left.
  /// Returns true once, when it settles that.
  bool settles(Trainer& trainer);
  double seconds_left() const { return end_ - clock_(); }
  /// Whether the steps that are planned end before the time, since more would not be worth it.
  bool ends_early(const Trainer& trainer) const { return trainer.recipe().steps == most_steps_; }
  /// Whether the time is over before the last step, because the machine slept while the rate fell. How many steps are
  /// left was settled then.
  bool overslept() const { return slept_in_fall_ && seconds_left() <= 0; }

 private:
  double slept_until(double now);

  Clock clock_;
  double begin_, end_;
  double last_;  // end of the last step
  i64 most_steps_;
  double awake_ = 0;      // seconds of the steps during which the machine did not sleep
  i64 steps_awake_ = 0;   // how many these are
  double slept_ = 0;      // seconds since `halfway_`
  double halfway_;        // end of the last step in the first half of the constant rate; speed is measured from there
  i64 halfway_done_ = 0;  // the steps made by then
  bool settled_ = false, slept_in_fall_ = false;
};

}  // namespace orrery
