// Chapter 8. The head of a language model and its loss as one operation.
#pragma once

#include "autograd/ops/cross_entropy.h"
#include "autograd/variable.h"

namespace orrery {

/// cross_entropy(linear(x), targets), computed in chunks of rows, so that large logits never exist as a whole. A
/// scalar of x [..., d], weight [K, d], bias [K] or undefined, and targets i32 [...]. Errors: those of `linear` and
/// `cross_entropy`.
Variable linear_cross_entropy(const Variable& x, const Variable& weight, const Variable& bias, const Tensor& targets,
                              const CrossEntropyOptions& options = {});

}  // namespace orrery
