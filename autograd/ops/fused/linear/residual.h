// Chapter 8. The residual connection, also with the normalisation that follows it.
#pragma once

#include "autograd/ops/layer_norm.h"
#include "autograd/variable.h"
#include "core/random.h"

namespace orrery {

/// x + dropout(f), for x and f of the same shape, with at least one axis; p and `draw` are those of dropout. Errors:
/// other shapes; p outside [0, 1].
Variable residual(const Variable& x, const Variable& f, double p = 0, const Draw& draw = {});

struct ResidualNormOptions {
  double eps = 1e-5;  ///< of layer_norm
  LayerNormForm form = LayerNormForm::root_of_variance_plus_eps;
  double p = 0;  ///< of dropout
  Draw draw{};
};
/// layer_norm(x + dropout(f)), for x and f [..., D] and weight and bias [D], which may be undefined. Errors: those of
/// `residual` and `layer_norm`.
Variable residual_norm(const Variable& x, const Variable& f, const Variable& weight, const Variable& bias,
                       const ResidualNormOptions& options = {});

}  // namespace orrery
