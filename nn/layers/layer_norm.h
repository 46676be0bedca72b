// Chapter 5. LayerNorm: brings each position's vector to mean 0 and variance 1, then scales and shifts it as learned.
//
// Paper, section 3.1: "We employ a residual connection around each of the two sub-layers, followed by layer
// normalization."
//   y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias    over the last axis; var(x) = mean((x - mean(x))^2)
// Shapes: x, y [..., D]; weight, bias [D]. Other forms of the divisor: LayerNormForm in autograd/ops/layer_norm.h.
#pragma once

#include "autograd/ops/fused/linear/residual.h"
#include "autograd/ops/layer_norm.h"
#include "nn/init.h"
#include "nn/module.h"

namespace orrery::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool bias = true;
  LayerNormForm form = LayerNormForm::root_of_variance_plus_eps;
};

struct LayerNorm : Module {
  Variable weight;  // [D], starts at 1
  Variable bias;    // [D], starts at 0; undefined without bias
  double eps;
  LayerNormForm form;

  /// Nothing is drawn; `rng` is given for Rng::of_shapes.
  explicit LayerNorm(i64 D, const LayerNormOptions& options = {}, const Rng& rng = Rng(0))
      : weight(parameter(initial_constant({D}, 1, rng))), eps(options.eps), form(options.form) {
    if (options.bias) bias = parameter(initial_constant({D}, 0, rng));
  }
  Variable operator()(const Variable& x) const { return layer_norm(x, weight, bias, eps, form); }
  /// The norm of x + dropout(f), in one pass.
  Variable normalized_sum(const Variable& x, const Variable& f, double p, const Draw& draw) const {
    return residual_norm(x, f, weight, bias, {.eps = eps, .form = form, .p = p, .draw = draw});
  }
  void visit(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace orrery::nn
