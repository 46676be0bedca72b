// Chapter 5. A wrong answer to exercise 5.1: the larger of the two terms is taken.
// Expect: FAILED  step 1
#include <algorithm>
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

double my_noam(i64 step, i64 d_model, i64 warmup) {
  const double t = static_cast<double>(step), w = static_cast<double>(warmup);
  return std::pow(d_model, -0.5) * std::max(std::pow(t, -0.5), t * std::pow(w, -1.5));
}
