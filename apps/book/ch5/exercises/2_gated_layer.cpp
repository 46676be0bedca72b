// Chapter 5. Exercise 5.2: a layer of your own.
//
// The feed-forward network of many newer models, FFN_SwiGLU (Shazeer 2020): y = linear3(linear1(x) * silu(linear2(x))).
// silu(z) = z s(z), with the sigmoid s, is an operation of the library: autograd/ops/activation.h.
// Write the call, and `visit`, which names each part as its member is named, in this order.
// Grade it:  apps/run exercise 5.2
#include "autograd/ops.h"
#include "nn/nn.h"

using namespace orrery;

struct GatedFeedForward : nn::Module {
  nn::Linear linear1, linear2, linear3;

  GatedFeedForward(i64 d_model, i64 d_ff, Rng& rng)
      : linear1(d_model, d_ff, rng), linear2(d_model, d_ff, rng), linear3(d_ff, d_model, rng) {}

  Variable operator()(const Variable& x) const {
    return linear3(linear1(x));  // YOUR CODE: there is no gate
  }

  void visit(nn::Visitor& v) override {
    v("linear1", linear1);  // YOUR CODE: this is one of three
  }
};
