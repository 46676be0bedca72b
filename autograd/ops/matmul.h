// Chapter 4. The matrix product.
#pragma once

#include "autograd/variable.h"
#include "core/products/gemm.h"

namespace orrery {

/// a b: [..., m, k] with [..., k, n] gives [..., m, n]; leading axes are broadcast. With `trans`, a, b or both are
/// stored transposed: a as [..., k, m], b as [..., n, k]. A vector a [k] counts as a row and a vector b [k] as a
/// column, and y lacks that axis: [..., m, k] with [k] gives [..., m]. One b [k, n] for all matrices of an a that is
/// not transposed costs no memory; what is repeated otherwise is copied. Errors: shapes or dtypes that do not fit; a
/// vector beside anything but Trans::none.
Variable matmul(const Variable& a, const Variable& b, Trans trans = Trans::none);

}  // namespace orrery
