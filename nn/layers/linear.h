// Chapter 5. Linear: y = x W^T + b, applied to every position alike.
//
// Paper, section 3.3: "While the linear transformations are the same across different positions, they use different
// parameters from layer to layer."
// Shapes: x [..., in], W [out, in], b [out], y [..., out]. W is stored with one row per output, as in PyTorch's files.
// Read next: autograd/ops/embedding.cpp
#pragma once

#include "autograd/ops.h"
#include "nn/init.h"
#include "nn/module.h"

namespace orrery::nn {

struct LinearOptions {
  bool bias = true;
  Init init = Init::xavier;
};

struct Linear : Module {
  Variable weight;  // [out, in]
  Variable bias;    // [out], not defined without bias

  Linear(i64 in, i64 out, Rng& rng, const LinearOptions& options = {})
      : weight(parameter(initial_weight(options.init, out, in, rng))) {
    if (options.bias) bias = parameter(initial_bias(options.init, out, in, rng));
  }
  /// How many numbers such a layer learns; in double, where no size overflows.
  static double count(i64 in, i64 out, const LinearOptions& options) {
    return static_cast<double>(out) * (static_cast<double>(in) + (options.bias ? 1 : 0));
  }
  /// x [..., in] to [..., out].
  Variable operator()(const Variable& x) const { return linear(x, weight, bias); }
  void visit(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace orrery::nn
