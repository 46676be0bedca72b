// Chapter 5. FeedForward: two linear maps with a nonlinearity between them, applied to each position on its own.
//
// Paper, section 3.3: "each of the layers in our encoder and decoder contains a fully connected feed-forward network,
// which is applied to each position separately and identically. This consists of two linear transformations with a ReLU
// activation in between. FFN(x) = max(0, xW1 + b1)W2 + b2".
// Shapes: x, y [..., d_model]; inner activations [..., d_ff]. Dropout is applied to the inner activations, as in
// PyTorch's layers. If both linear maps are plain, fused operations compute it
// (autograd/ops/fused/linear/feed_forward.h).
// Read next: apps/book/ch5/my_layer.cpp
#pragma once

#include "autograd/ops/activation.h"
#include "autograd/ops/fused/linear/feed_forward.h"
#include "nn/layers/dropout.h"
#include "nn/layers/linear.h"

namespace orrery::nn {

/// relu is the paper's choice. gelu is exact; gelu_tanh is the approximation of GPT-2.
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
  Variable operator()(const Variable& x, Pass& pass) const {
    const double p = dropout.active(pass);
    const Draw draw = pass.draw_for(p);
    if (!linear1.is_plain() || !linear2.is_plain()) return composed(x, p, draw);
    const Variable &W1 = linear1.weight, &b1 = linear1.bias, &W2 = linear2.weight, &b2 = linear2.bias;
    if (activation == Activation::gelu) return gelu_feed_forward(x, W1, b1, W2, b2, p, draw);
    if (activation == Activation::gelu_tanh) return gelu_tanh_feed_forward(x, W1, b1, W2, b2, p, draw);
    return linear2(linear_relu(x, W1, b1, p, draw));
  }
  void visit(Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
  }

 private:
  Variable activated(const Variable& z) const {
    switch (activation) {
      case Activation::relu: return relu(z);
      case Activation::gelu: return gelu(z);
      case Activation::gelu_tanh: break;
    }
    return gelu_tanh(z);
  }
  Variable composed(const Variable& x, double p, const Draw& draw) const {  // for linear maps that were replaced
    const Variable a = activated(linear1(x));
    return linear2(p > 0 ? orrery::dropout(a, p, draw) : a);
  }
};

}  // namespace orrery::nn
