// Chapter 5. Solution of exercise 5.3: Adam's step.
//
// One number p and its gradient g. Write the next step: update m and v, correct both for having started at 0, and
// return the new p. The text has the formulas.
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyAdam {
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  double m = 0, v = 0;
  int t = 0;  // the number of steps made

  // p after a step with gradient g.
  double next(double p, double g, double learning_rate) {
    ++t;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const double m_hat = m / (1 - std::pow(beta1, t)), v_hat = v / (1 - std::pow(beta2, t));
    return p - learning_rate * m_hat / (std::sqrt(v_hat) + eps);
  }
};
