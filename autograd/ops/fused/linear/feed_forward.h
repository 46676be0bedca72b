// Chapter 8. The feed-forward network with GELU as one operation.
#pragma once

#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

/// linear(dropout(gelu(linear(x, W1, b1))), W2, b2), and the same with gelu_tanh: x [..., d_model] to
/// [..., d_out], with W1 [d_ff, d_model], b1 [d_ff], W2 [d_out, d_ff], b2 [d_out]. Biases may be undefined. p and
/// `draw` are those of dropout (autograd/ops/dropout.h). Errors: shapes that do not fit; p outside [0, 1].
Variable gelu_feed_forward(const Variable& x, const Variable& W1, const Variable& b1, const Variable& W2,
                           const Variable& b2, double p = 0, const Draw& draw = {});
Variable gelu_tanh_feed_forward(const Variable& x, const Variable& W1, const Variable& b1, const Variable& W2,
                                const Variable& b2, double p = 0, const Draw& draw = {});

}  // namespace orrery
