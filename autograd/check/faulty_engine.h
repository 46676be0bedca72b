// Chapter 3. An engine without one of its rules: would the gradient checker notice?
//
// It walks a tape like autograd/engine.cpp, but in its own few lines, so that the real engine needs no switch for its
// rules. autograd/check/mutation.h gives it to the gradient checker.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// What the engine does for every operation.
enum class EngineRule {
  unbroadcast,   ///< a gradient of the broadcast shape is summed down to its input's
  newest_first,  ///< the newest of the waiting nodes is visited next, since its gradient is complete
};

/// Like `backward(y, dy)`, but without `rule`. Sets `needed` if the rule would have had something to do. Errors: a
/// gradient of the wrong shape reaches an operation; a node is reached that was visited before. After an error, all
/// gradients that the walk had reached are dropped.
void backward_without(EngineRule rule, const Variable& y, const Tensor& dy, bool& needed);

}  // namespace orrery
