// Chapter 5. A wrong answer to exercise 5.2: what relu loses is not made up for.
// Expect: FAILED  ten maps with relu
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

double xavier_bound(i64 fan_in, i64 fan_out) {
  return std::sqrt(6.0 / static_cast<double>(fan_in + fan_out));  // the variance of U(-a, a) is a^2 / 3
}

// So that z -> relu(z) W^T keeps the mean square of z.
double relu_bound(i64 fan_in) { return std::sqrt(3.0 / static_cast<double>(fan_in)); }
