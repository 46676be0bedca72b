// Chapter 5. A wrong answer to exercise 5.5: `visit` forgets linear2.
// Expect: FAILED  visit names every parameter
#include "autograd/ops.h"
#include "nn/nn.h"

using namespace orrery;

struct GatedFeedForward : nn::Module {
  nn::Linear linear1, linear2, linear3;

  GatedFeedForward(i64 d_model, i64 d_ff, Rng& rng)
      : linear1(d_model, d_ff, rng), linear2(d_model, d_ff, rng), linear3(d_ff, d_model, rng) {}

  Variable operator()(const Variable& x) const { return linear3(linear1(x) * silu(linear2(x))); }

  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear3", linear3);
  }
};
