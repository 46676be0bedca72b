// Chapter 5. Dropout.
#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

/// Sets each element to 0 with probability p and scales the others so that the mean is preserved. The same `draw` drops
/// the same elements (core/random.h). Error: p outside [0, 1].
Variable dropout(const Variable& x, double p, const Draw& draw);

}  // namespace orrery
