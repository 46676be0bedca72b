// Chapter 5. Clipping: gradients that are too long together are shortened together.
//
//   norm = sqrt(sum over all gradients of g^2),    g <- g min(1, max_norm / (norm + 1e-6))
// The direction of the step stays; one bad batch cannot throw the model far off. As torch.nn.utils.clip_grad_norm_.
// Serves: optim/adam.h
#pragma once

#include "autograd/variable.h"

namespace orrery::optim {

/// Scales the gradients of `parameters` so that their common 2-norm is at most `max_norm`, and returns the norm they
/// had. A tied parameter counts once; absent gradients count as zero; infinity as `max_norm` only measures. Errors: a
/// norm that is not finite, naming the first parameter whose gradient is not, or, where squares only overflow, the one
/// with the largest; the gradients are then unchanged.
double clip_grad_norm(const Parameters& parameters, double max_norm);

/// The common 2-norm of the gradients of parameters that are all different, as an optimiser's are. Errors: a norm that
/// is not finite, as above.
double grad_norm(const Parameters& parameters);
/// What gradients of this norm are multiplied by. Errors: a `max_norm` that is not positive.
double clip_factor(double norm, double max_norm);

}  // namespace orrery::optim
