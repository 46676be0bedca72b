// Chapter 5. A wrong answer to exercise 5.3: m and v are not corrected.
// Expect: FAILED  the first step
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyAdam {
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  double m = 0, v = 0;
  int t = 0;  // the number of steps made

  // p after a step with gradient g.
  double next(double p, double g, double learning_rate) {
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    return p - learning_rate * m / (std::sqrt(v) + eps);
  }
};
