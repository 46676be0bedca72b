// Chapter 6. Turning pairs of numbers by an angle of their position.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// Turns each pair (x_i, x_{i + d/2}) by the angle of its position and pair. x is [B, n, h, d] with an even d; `sine`
/// and `cosine` of the angles are [n, d / 2], of x's dtype. nn::Rotary (nn/attention/rotary.h) makes them. Errors: an
/// odd d; other shapes or dtypes.
Variable rotary(const Variable& x, const Tensor& sine, const Tensor& cosine);

}  // namespace orrery
