// Chapter 4. The matrix product.
//
// Serves: autograd/ops/matmul.cpp
#pragma once

#include "autograd/variable.h"
#include "core/products/gemm.h"

namespace orrery {

/// a b: [..., m, k] with [k, n] or [..., k, n] gives [..., m, n]. With `trans`, a or b is stored transposed. Errors:
/// shapes that do not fit; Trans::a or Trans::both with a b of two axes that several matrices of a would share: stored
/// transposed, these cannot be folded into one.
Variable matmul(const Variable& a, const Variable& b, Trans trans = Trans::none);

}  // namespace orrery
