// Chapter 4. The matrix product.
#pragma once

#include "autograd/variable.h"
#include "core/products/gemm.h"

namespace orrery {

/// a b: [..., m, k] with [k, n] or [..., k, n] gives [..., m, n]. With `trans`, a, b or both are stored transposed: a
/// as [..., k, m], b as [..., n, k]. Errors: shapes or dtypes that do not fit; one b of two axes for several transposed
/// matrices a.
Variable matmul(const Variable& a, const Variable& b, Trans trans = Trans::none);

}  // namespace orrery
