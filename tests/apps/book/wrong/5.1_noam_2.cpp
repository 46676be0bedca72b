// Chapter 5. A wrong answer to exercise 5.1: with -3 / 2 in whole numbers, which is -1.
// Expect: the number is 10, should be 1
#include <algorithm>
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

double my_noam(i64 step, i64 d_model, i64 warmup) {
  const double t = static_cast<double>(step), w = static_cast<double>(warmup);
  return std::pow(d_model, -0.5) * std::min(std::pow(t, -0.5), t * std::pow(w, -3 / 2));
}
