// Chapter 5. Exercise 5.4: Adam's step.
//
// One number p and its gradient g. Write the next step: update m and v, correct both for having started at 0, and
// return the new p. The text has the formulas.
// Grade it:  apps/run exercise 5.4
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

struct MyAdam {
  double beta1 = 0.9, beta2 = 0.98, eps = 1e-9;
  double m = 0, v = 0;
  int t = 0;  // the number of steps made

  // p after a step with gradient g.
  double next(double p, double g, double learning_rate) {
    return p - learning_rate * g;  // YOUR CODE: this is gradient descent
  }
};
