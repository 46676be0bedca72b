// Chapter 8. The linear map of every layer, also with relu and dropout.
#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

/// Rows [begin, end) of a weight; end = -1 means all rows from `begin` on.
struct RowRange {
  i64 begin = 0, end = -1;
};
/// x W^T + b: x [..., in] to [..., out], with weight [out, in] and bias [out], which may be undefined. With `rows`,
/// only these rows of weight and bias are used. Errors: shapes that do not fit; rows that the weight does not have.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias, RowRange rows = {});
/// dropout(relu(linear(x, weight, bias))), where p and `draw` are those of dropout (autograd/ops/dropout.h). Errors:
/// shapes that do not fit; p outside [0, 1].
Variable linear_relu(const Variable& x, const Variable& weight, const Variable& bias, double p = 0,
                     const Draw& draw = {});

}  // namespace orrery
