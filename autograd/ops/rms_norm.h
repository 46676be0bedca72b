// Chapter 4. RMS normalisation.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// x / sqrt(mean of x^2 + eps) over the last axis. nn::RmsNorm multiplies it by a weight. With eps = 0, a row of zeros
/// becomes NaN. Error: a negative eps.
Variable rms_norm(const Variable& x, double eps = 1e-6);

}  // namespace orrery
