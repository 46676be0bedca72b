// Chapter 4. Sums, means and maxima over the given axes.
#pragma once

#include "autograd/variable.h"
#include "core/tensor_ops.h"

namespace orrery {

// The axes are dropped, or kept with size 1. No axes means all. Errors: those of core/tensor_ops.h.
Variable sum(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
Variable mean(const Variable& x, const Axes& axes = {}, bool keep_axes = false);
/// If several maxima are equal, they share the gradient evenly.
Variable max(const Variable& x, const Axes& axes = {}, bool keep_axes = false);

}  // namespace orrery
