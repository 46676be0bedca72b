// Chapter 8. A gated recurrent unit over all positions of a sequence.
#pragma once

#include "autograd/variable.h"

namespace orrery {

class Mask;

/// A gated recurrent unit at all positions, from the first to the last, or with `reverse` from the last to the first.
/// The gates [B, T, 3 H] are W_x x + b_x, in the order r, z, n; h0 [B, H], 0 if undefined; W [3 H, H], b [3 H], which
/// may be undefined. Returns the states [B, T, H]. Only the padding of `mask` is used: in it the state does not change.
/// There it is the state of the row's last real position or, with `reverse`, which begins in the padding, h0. Errors:
/// shapes or a padding that do not fit.
Variable gru(const Variable& gates, const Variable& h0, const Variable& W, const Variable& b, const Mask& mask,
             bool reverse = false);

}  // namespace orrery
