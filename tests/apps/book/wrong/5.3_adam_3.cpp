// Chapter 5. A wrong answer to exercise 5.3: the steps are counted, but the correction always is that of the first.
// Expect: FAILED  six steps, as optim::Adam makes them
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
    const double m_hat = m / (1 - beta1), v_hat = v / (1 - beta2);
    return p - learning_rate * m_hat / (std::sqrt(v_hat) + eps);
  }
};
