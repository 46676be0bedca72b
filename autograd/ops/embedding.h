// Chapter 5. Rows of a table, looked up by token id.
#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

/// The rows of `weight` [K, D] that `ids` (i32 of any shape) select: [ids..., D]. An id outside [0, K) is an error.
Variable embedding(const Variable& weight, const Tensor& ids);
/// The entries along axis 0 that `ids` (i32) select: x [n, rest...] to [ids..., rest...]. An id may come often.
Variable index_rows(const Variable& x, const Tensor& ids);
/// dropout(factor * embedding(weight, ids) + positions), fused: ids i32 [B, T] and positions [T or more, D] to
/// [B, T, D]. p and `draw` are those of dropout. Errors: those of `embedding` and `dropout`; other shapes.
Variable embedding_sum(const Variable& weight, const Tensor& ids, double factor, const Variable& positions,
                       double p = 0, const Draw& draw = {});

}  // namespace orrery
