// Chapter 4. The matrix product.
//
// Serves: autograd/ops/matmul.cpp
#pragma once

#include "autograd/variable.h"
#include "core/products/gemm.h"

namespace orrery {

/// a b: [..., m, k] with [k, n] or [..., k, n] gives [..., m, n]. With `trans`, a or b is stored transposed. Errors:
/// shapes or dtypes that do not fit; a transposed a with leading axes and a b of two axes, since only matrices that are
/// not transposed can share one b.
Variable matmul(const Variable& a, const Variable& b, Trans trans = Trans::none);

}  // namespace orrery
