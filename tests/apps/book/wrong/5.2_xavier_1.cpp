// Chapter 5. A wrong answer to exercise 5.2: the bound is taken for the standard deviation.
// Expect: FAILED  the variance of drawn weights
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

double xavier_bound(i64 fan_in, i64 fan_out) { return std::sqrt(2.0 / static_cast<double>(fan_in + fan_out)); }

// So that z -> relu(z) W^T keeps the mean square of z.
double relu_bound(i64 fan_in) { return std::sqrt(2.0 / static_cast<double>(fan_in)); }
