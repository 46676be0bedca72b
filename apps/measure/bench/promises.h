// Chapter 9. `orrery bench promises`: what three promises of tests/promises/README.md cost a training step.
//
//   11  using a saved tensor that was changed is an error: each write counts a version, each save notes it, each use
//       compares it
//   12  the first NaN is named: the loss and the norm of the gradients are checked before each step
//   15  denormal numbers cost nothing: every thread treats them as zero
// Method for 12 and 15: plain steps and steps that differ only in the promise take turns.
// Method for 11: it cannot be switched off, so its work is timed alone: that for one tensor (a write, a save, and
// `most_uses` uses), for as many tensors as the operations of a step could save (`most_saved` each), beside a plain
// step. This is an upper limit.
#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace orrery {

/// No operation of a Transformer or a GPT saves more tensors for its backward, or uses one of them more often.
inline constexpr i64 most_saved = 4, most_uses = 10;

/// Fills `weight` with numbers of both signs that are too small to be normal.
void make_denormal(Tensor& weight, Rng& rng);

}  // namespace orrery
