// Chapter 4. Softmax, which turns numbers into probabilities, and its logarithm.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// e^{x_i} / sum_j e^{x_j} over the last axis, [..., n] to [..., n]. Error, also of log_softmax: x has no axis.
Variable softmax(const Variable& x);
/// x_i - log sum_j e^{x_j} over the last axis. log(softmax(x)) would be -infinity where softmax rounds to 0.
Variable log_softmax(const Variable& x);

}  // namespace orrery
