// Chapter 5. Dropout.
//
// Serves: nn/pass.h
#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

/// Sets each element to 0 with probability p and scales the others such that the mean is preserved.
Variable dropout(const Variable& x, double p, const Draw& draw);

}  // namespace orrery
