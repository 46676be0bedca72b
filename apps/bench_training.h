// Chapter 9. The training step that is measured: forward, loss, backward, clipping, Adam.
//
// A real batch has rows of different lengths: every tenth source and target is two tokens short. The tokens are random
// and the same in every step, since speed does not depend on them.
// Read next: apps/bench_training.cpp
#pragma once

#include "apps/bench_configs.h"
#include "nn/transformer.h"
#include "optim/adam.h"

namespace orrery {

/// A model of one configuration with its batch and its optimiser.
class BenchTraining {
 public:
  /// Errors: `dropout` outside [0, 1).
  BenchTraining(const BenchConfig& config, double dropout, i64 seed);

  /// One training step; returns the loss it started from.
  double step() {
    const double loss = pass();
    update();
    return loss;
  }
  /// Its first part, forward and backward: leaves a gradient at every parameter and returns the loss.
  double pass();
  /// Its second part: gradients are clipped and used up.
  void update();

  i64 parameter_count() { return model_.parameter_count(); }

 private:
  u64 seed_;
  i64 steps_begun_ = 0;
  Rng rng_;
  nn::Transformer model_;
  optim::Adam adam_;
  Tensor source_, input_, gold_;  // i32 [B, S], [B, T], [B, T]: `gold_` is one token ahead of `input_`
};

}  // namespace orrery
