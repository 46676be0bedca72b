// Chapter 5. Pass: one run through a model, as a value that is handed from layer to layer.
//
// Layers hold neither a train/eval flag nor a random generator. Whatever may differ from one pass to another, above all
// dropout, is in the Pass. Its n-th dropout mask is a function of (seed, step, micro, n) alone. So the masks are the
// same for any number of threads, when the checker repeats a pass, and in a run that is resumed from its seed and step.
// A caller who wants to see attention weights hands a recorder in:
//   AttentionRecorder seen;
//   pass.recorder = &seen;
//   model(source, target, pass);   // then seen.of(*model.decoder.layers[0].self_attn) is [B, h, T, T]
// Read next: nn/layers/linear.h
#pragma once

#include <limits>
#include <vector>

#include "core/error.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery::nn {

class Module;

/// Attention weights before dropout, [B, h, n, m], of each attention in the order in which they were computed.
struct AttentionRecorder {
  struct Recorded {
    const Module* attention;  ///< which module computed them
    Tensor weights;
  };
  std::vector<Recorded> all{};

  /// Those of the last call of one module. Error: it has recorded none.
  Tensor of(const Module& attention) const {
    for (size_t i = all.size(); i-- > 0;)
      if (all[i].attention == &attention) return all[i].weights;
    fail("attention recorder", "this module has recorded no attention weights");
  }
};

/// An argument of every layer that needs it: layer(x, ..., pass).
struct Pass {
  bool train = false;
  u64 seed = 0;
  u32 step = 0;
  u32 micro = 0;                          ///< number of the micro-batch within the step, below Draw::most_micro
  u32 draws = 0;                          ///< dropout masks drawn so far
  AttentionRecorder* recorder = nullptr;  ///< if given, it receives all attention weights

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
