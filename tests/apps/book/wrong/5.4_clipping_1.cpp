// Chapter 5. A wrong answer to exercise 5.4: each gradient is clipped by its own norm.
// Expect: [0] is 1, should be 0.6
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

double my_clip(std::vector<Tensor>& gradients, double max_norm) {
  double squares = 0;
  for (Tensor& gradient : gradients) {
    if (!gradient.defined()) continue;
    const double own = sum_of_squares(gradient);
    squares += own;
    if (own > max_norm * max_norm) scale_in_place(gradient, max_norm / std::sqrt(own));
  }
  return std::sqrt(squares);
}
