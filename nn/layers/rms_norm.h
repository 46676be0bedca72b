// Chapter 5. RmsNorm: divides each position's vector by its root mean square, then scales it as learned.
//
// Zhang and Sennrich, Root Mean Square Layer Normalization (2019), suppose that "re-centering invariance in LayerNorm
// is dispensable": the mean need not be subtracted, and there is no bias.
//   y = x / sqrt(mean(x^2) + eps) * weight    over the last axis
// Shapes: x, y [..., D]; weight [D].
#pragma once

#include "autograd/ops/arithmetic.h"
#include "autograd/ops/rms_norm.h"
#include "core/tensor_ops.h"
#include "nn/module.h"

namespace orrery::nn {

struct RmsNorm : Module {
  Variable weight;  // [D], starts at 1
  double eps;

  explicit RmsNorm(i64 D, double eps = 1e-6) : weight(parameter(full({D}, 1.0))), eps(eps) {}
  Variable operator()(const Variable& x) const { return rms_norm(x, eps) * weight; }
  void visit(Visitor& v) override { v("weight", weight); }
};

}  // namespace orrery::nn
