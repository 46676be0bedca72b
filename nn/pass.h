// Chapter 5. Pass: one run through a model, as a value that is handed from layer to layer.
//
// Layers hold neither a train/eval flag nor a random generator. Whatever may differ from one pass to another, above all
// dropout, is in the Pass. Its n-th dropout mask is a function of (seed, step, micro, n) alone. So the masks are the
// same for any number of threads, when the checker repeats a pass, and in a run that is resumed from its seed and step.
// Read next: nn/layers/linear.h
#pragma once

#include <limits>

#include "core/error.h"
#include "core/random.h"

namespace orrery::nn {

/// An argument of every layer that needs it: layer(x, ..., pass).
struct Pass {
  bool train = false;
  u64 seed = 0;
  u32 step = 0;
  u32 micro = 0;  ///< number of the micro-batch within the step, below Draw::most_micro
  u32 draws = 0;  ///< dropout masks drawn so far

  /// Dropout on. Errors: a step outside [0, 2^32) or a micro-batch outside [0, 65536), since its masks would be those
  /// of another.
  static Pass training(u64 seed, i64 step, i64 micro = 0) {
    check(step >= 0 && step <= std::numeric_limits<u32>::max(), "pass", "step must be in [0, 2^32), not ", step);
    check(micro >= 0 && micro < Draw::most_micro, "pass", "micro must be in [0, ", Draw::most_micro, "), not ", micro);
    return {.train = true, .seed = seed, .step = static_cast<u32>(step), .micro = static_cast<u32>(micro)};
  }
  /// Dropout off.
  static Pass inference() { return {}; }

  /// Identifies the next mask of this pass.
  Draw next_draw() { return {.seed = seed, .step = step, .micro = micro, .index = draws++}; }
  /// The same if p > 0. With p = 0 nothing is dropped, and no mask is counted.
  Draw draw_for(double p) { return p > 0 ? next_draw() : Draw{}; }
};

}  // namespace orrery::nn
