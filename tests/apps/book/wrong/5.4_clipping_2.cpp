// Chapter 5. A wrong answer to exercise 5.4: small gradients are made longer.
// Expect: FAILED  gradients within the bound stay as they are
#include <cmath>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

double my_clip(std::vector<Tensor>& gradients, double max_norm) {
  double squares = 0;
  for (const Tensor& gradient : gradients) {
    if (gradient.defined()) squares += sum_of_squares(gradient);
  }
  const double norm = std::sqrt(squares);
  for (Tensor& gradient : gradients) {
    if (gradient.defined()) scale_in_place(gradient, max_norm / norm);
  }
  return norm;
}
