// Chapter 4. Layer normalisation.
#pragma once

#include "autograd/variable.h"

namespace orrery {

/// The divisor of layer normalisation. PyTorch and the paper's authors use sqrt(var + eps). Some tutorials use std +
/// eps; the Annotated Transformer uses std + eps with the variance over n - 1.
enum class LayerNormForm { root_of_variance_plus_eps, std_plus_eps, unbiased_std_plus_eps };

/// (x - mean) / deviation * weight + bias over the last axis of x [..., D]; weight and bias [D], each may be undefined.
/// Errors: an x without an axis; a weight or bias of another shape; an eps that is negative or not finite; D = 1 with
/// the unbiased form.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps = 1e-5,
                    LayerNormForm form = LayerNormForm::root_of_variance_plus_eps);

}  // namespace orrery
