// Chapter 5. Clipping by the global norm.
//
// Squares are summed in double, over fixed chunks: the norm has the same bits for any number of threads.
// Read next: optim/schedule.h
#include "optim/clip.h"

#include <cmath>

#include "core/tensor_ops.h"
#include "optim/parameters.h"

namespace orrery::optim {

double clip_grad_norm(const Parameters& parameters, double max_norm) {
  check(max_norm > 0, "clip_grad_norm", "max_norm must be positive, got ", max_norm);
  Parameters each = without_repeats(parameters);
  double squares = 0;
  for (const NamedParameter& p : each) {
    if (p.value.gradient().defined()) squares += sum_of_squares(p.value.gradient());
    check(std::isfinite(squares), "clip_grad_norm", "the gradient of parameter ", p.name, " is not finite");
  }
  const double norm = std::sqrt(squares);
  const double coefficient = max_norm / (norm + 1e-6);
  if (coefficient < 1) {
    for (NamedParameter& p : each) {
      if (p.value.gradient().defined()) scale_in_place(p.value.mutable_gradient(), coefficient);
    }
  }
  return norm;
}

}  // namespace orrery::optim
