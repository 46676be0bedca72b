// Chapter 9. A training step that checks its numbers: if one is not finite, no parameter changes, and an error names
// the cause.
//
// The norm of the gradients, which clipping needs anyway, is finite only if every gradient is. So it is enough to check
// the loss and the norm; `orrery bench promises` measures the cost. If one of them is not finite, the pass is run once
// more under an observer (autograd/check/first_nan.h), which names the first operation with such a result.
#pragma once

#include <functional>
#include <string>

#include "optim/optimizer.h"

namespace orrery {

/// A step of a training program.
struct TrainingStep {
  std::string program;  ///< "toy": errors begin with it
  i64 number = 0;       ///< counted from 1
  double rate = 0;      ///< the learning rate
  double clip = 0;      ///< largest norm of the gradient; 0 does not clip
};

/// Calls optimizer.step(rate, clip), after the caller's backward from `loss`. Error: the loss or a gradient is not
/// finite. Then no parameter changes, the gradients are discarded, and the message names the first such number of the
/// pass, for which `loss_of` computes the loss once more, with the same bits.
void make_step(const TrainingStep& step, double loss, optim::Optimizer& optimizer,
               const std::function<Variable()>& loss_of);

}  // namespace orrery
