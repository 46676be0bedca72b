// Chapter 5. FeedForward: two linear maps with a nonlinearity between them, applied to each position on its own.
//
// Paper, section 3.3: "each of the layers in our encoder and decoder contains a fully connected feed-forward network,
// which is applied to each position separately and identically. This consists of two linear transformations with a ReLU
// activation in between:  FFN(x) = max(0, xW1 + b1)W2 + b2".
// Shapes: x, y [..., d_model], between them [..., d_ff]. Dropout falls on the inner activations, as in PyTorch's
// layers.
// Read next: nn/check/gradcheck.h
#pragma once

#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"

namespace orrery::nn {

/// ReLU is the paper's; GELU is exact, or with GPT-2's tanh.
enum class Activation { relu, gelu, gelu_tanh };

struct FeedForwardOptions {
  double dropout = 0;
  Activation activation = Activation::relu;
  bool bias = true;
  Init init = Init::xavier;

  LinearOptions linear() const { return {.bias = bias, .init = init}; }
};

struct FeedForward : Module {
  Linear linear1, linear2;
  Dropout dropout;
  Activation activation;

  FeedForward(i64 d_model, i64 d_ff, Rng& rng, const FeedForwardOptions& options = {})
      : linear1(d_model, d_ff, rng, options.linear()),
        linear2(d_ff, d_model, rng, options.linear()),
        dropout(options.dropout),
        activation(options.activation) {}
  /// How many numbers such a layer learns.
  static double count(i64 d_model, i64 d_ff, const FeedForwardOptions& options) {
    return Linear::count(d_model, d_ff, options.linear()) + Linear::count(d_ff, d_model, options.linear());
  }
  Variable operator()(const Variable& x, Pass& pass) const {
    const Variable &W1 = linear1.weight, &b1 = linear1.bias, &W2 = linear2.weight, &b2 = linear2.bias;
    const double p = dropout.active(pass);
    const Draw draw = pass.draw_for(p);
    if (activation == Activation::gelu) return gelu_feed_forward(x, W1, b1, W2, b2, p, draw);
    if (activation == Activation::gelu_tanh) return gelu_tanh_feed_forward(x, W1, b1, W2, b2, p, draw);
    return linear2(linear_relu(x, W1, b1, p, draw));
  }
  void visit(Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
  }
};

}  // namespace orrery::nn
