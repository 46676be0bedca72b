// Chapter 4. Sums, means, maxima and minima over the given axes.
#pragma once

#include "autograd/variable.h"
#include "core/tensor_ops.h"

namespace orrery {

// The axes are dropped, or kept with size 1. No axes means all. Errors: those of core/tensor_ops.h.
Variable sum(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
Variable mean(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
/// If several maxima are equal, they share the gradient evenly; so do minima.
Variable max(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
Variable min(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
/// y_i = x_0 + ... + x_i along `axis`, of the shape of x.
Variable cumulative_sum(const Variable& x, i64 axis);

// Compositions of others.
/// The sum of (x - mean)^2 over the axes, divided by n - correction for n numbers: with the correction 1, Bessel's, it
/// estimates the variance of what the numbers were drawn from, as torch.var; with 0 it is that of the numbers
/// themselves, as numpy.var. Axes as in `mean`. Error: n <= correction.
Variable variance(const Variable& x, const Axes& axes = {}, bool keep_axes = false, double correction = 1);
/// x / max(|x|, eps) for each row x of the last axis, with its 2-norm |x|, as torch.nn.functional.normalize: rows of
/// length 1. Shorter ones than eps stay short, and their derivative is 1 / eps. Error: eps <= 0, or eps^2 is 0.
Variable normalize(const Variable& x, double eps = 1e-12);
/// ln sum_i e^{x_i} over the axes, without overflow. -infinity if all x_i are, and then the derivative is NaN, as in
/// PyTorch. Axes as in `max`.
Variable log_sum_exp(const Variable& x, const Axes& axes = {}, bool keep_axes = false);

}  // namespace orrery
