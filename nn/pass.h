// Chapter 5. Pass: one trip through a model, as a value that travels with the data.
//
// Layers hold no train/eval flag and no random generator. What a pass may do differently, dropout above all, is in the
// Pass: the n-th draw of a pass is a function of (seed, step, micro, n), so that any thread count, the checker's replay
// and a run resumed from two integers all draw the same masks.
// Read next: nn/layers/linear.h
#pragma once

#include "core/random.h"

namespace orrery::nn {

/// layer(x, ..., pass)
struct Pass {
  bool train = false;
  u64 seed = 0;
  u32 step = 0;
  u32 micro = 0;  ///< number of the micro-batch within the step
  u32 draws = 0;  ///< dropout masks drawn so far

  /// Dropout on.
  static Pass training(u64 seed, i64 step, i64 micro = 0) {
    return {.train = true, .seed = seed, .step = static_cast<u32>(step), .micro = static_cast<u32>(micro)};
  }
  /// Dropout off.
  static Pass inference() { return {}; }

  /// The name of the next mask of this pass.
  Draw next_draw() { return {.seed = seed, .step = step, .micro = micro, .index = draws++}; }
  /// The same where something is dropped at all; with p = 0 no mask is used up.
  Draw draw_for(double p) { return p > 0 ? next_draw() : Draw{}; }
};

}  // namespace orrery::nn
