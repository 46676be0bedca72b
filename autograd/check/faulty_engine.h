// Chapter 3. An engine without one of its rules: would the gradient checker notice?
//
// It walks a tape as autograd/engine.cpp does, in its own few lines, so that the engine itself needs no place where its
// rules can be switched off. autograd/check/mutation.h has the gradient checker try it.
// Serves: autograd/check/proof.h
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// What the engine does for every operation.
enum class EngineRule {
  unbroadcast,   ///< a gradient of the broadcast shape is summed down to its input's
  newest_first,  ///< of the nodes that wait the newest is visited, so that its gradient is complete
};

/// As `backward(y, dy)`, but without `rule`. Sets `needed` where the rule would have had something to do.
/// Errors: a gradient of the wrong shape reaches an operation; a node is reached that was visited before. Then no
/// gradient is left anywhere that the walk had reached.
void backward_without(EngineRule rule, const Variable& y, const Tensor& dy, bool& needed);

}  // namespace orrery
