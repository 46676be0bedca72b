// Chapter 5. Clipping: if the vector of all gradients is too long, all of them are scaled down by one factor.
//
//   norm = sqrt(sum over all gradients of g^2),    g <- g min(1, max_norm / (norm + 1e-6))
// The direction of the step stays the same, but one bad batch cannot move the model far. As in
// torch.nn.utils.clip_grad_norm_.
#pragma once

#include "autograd/variable.h"

namespace orrery::optim {

/// Scales the gradients of `parameters` such that their common 2-norm is at most `max_norm`, and returns the norm
/// before that. A tied parameter counts once; absent gradients, and those of frozen parameters, count as zero; with
/// infinity as `max_norm`, only the norm is computed. Error: the norm is not finite. The message names the first
/// parameter whose gradient is not finite or, if only the norm overflows, the one with the largest gradient. The
/// gradients are then unchanged.
double clip_grad_norm(const Parameters& parameters, double max_norm);

/// Cuts every element of the gradients to [-max_value, max_value], as torch.nn.utils.clip_grad_value_. Unlike the norm,
/// this changes the direction of the step. Errors, before anything changes: a `max_value` that is not positive; a
/// gradient that is not finite.
void clip_grad_value(const Parameters& parameters, double max_value);

/// Error of "optimizer" that names the first parameter whose gradient is not finite. The list has no repeated
/// parameters.
void check_finite_gradients(const Parameters& parameters);
/// The common 2-norm of the gradients of a list without repeated parameters, such as an optimiser's. Error: the norm is
/// not finite, as above.
double grad_norm(const Parameters& parameters);
/// The factor that clips gradients of this norm. Errors: a `max_norm` that is not positive.
double clip_factor(double norm, double max_norm);

}  // namespace orrery::optim
