// Chapter 7. Convolution: each position sees its neighbours, by the same linear map everywhere.
//
// Gehring et al. 2017 ("Convolutional Sequence to Sequence Learning"), section 3.2: "Each convolution kernel [...]
// takes as input X [...] which is a concatenation of k input elements embedded in d dimensions and maps them to a
// single output element".
//   y_t = b + sum over j = 0 ... width - 1 of W_j x_{t + j - left}     left: zeros put in front of the sequence
// All positions are computed at once, as in a Transformer, but a layer reaches only width - 1 other positions, half of
// them on each side or, if it is causal, all of them before: positions far apart meet after several layers.
// Shapes: x [B, T, in], weight [out, in, width] and bias [out] as in torch.nn.Conv1d, y [B, T, out].
#pragma once

#include "autograd/ops/convolution.h"
#include "core/mask.h"
#include "nn/init.h"
#include "nn/module.h"

namespace orrery::nn {

struct Convolution : Module {
  Variable weight;  // [out, in, width]
  Variable bias;    // [out]
  ConvolutionPadding padding;

  /// Starts as in PyTorch: weight and bias from U(-1/sqrt(in width), 1/sqrt(in width)).
  Convolution(i64 in, i64 out, i64 width, ConvolutionPadding padding, Rng& rng)
      : weight(parameter(initial_weight(Init::pytorch_linear, out, in * width, rng).reshape({out, in, width}))),
        bias(parameter(initial_bias(Init::pytorch_linear, out, in * width, rng))),
        padding(padding) {}
  /// From given parameters.
  Convolution(Variable weight, Variable bias, ConvolutionPadding padding)
      : weight(std::move(weight)), bias(std::move(bias)), padding(padding) {}
  i64 width() const { return weight.size(2); }
  /// Only the padding of `mask` is used: inputs that it pads count as 0. Errors: an x of another shape; padding `same`
  /// with an even width.
  Variable operator()(const Variable& x, const Mask& mask = {}) const {
    return convolution(x, weight, bias, padding, mask);
  }
  /// Only the outputs that have all their inputs in x: [B, T - (width - 1), out]. Error: T < width - 1.
  Variable without_padding(const Variable& x) const {
    return convolution(x, weight, bias, ConvolutionPadding::none, {});
  }
  void visit(Visitor& v) override {
    v("weight", weight);
    v("bias", bias);
  }
};

}  // namespace orrery::nn
