// Chapter 5. A gated layer of one's own, a part that its visit forgets, and SGD with momentum in place of Adam.
#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/check/gradcheck.h"
#include "nn/layers/linear.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

// "GLU variants improve Transformer" (Shazeer 2020), equation 6: FFN_SwiGLU.
struct GatedFeedForward : nn::Module {
  nn::Linear linear1, linear2, linear3;
  GatedFeedForward(i64 d_model, i64 d_ff, Rng& rng)
      : linear1(d_model, d_ff, rng), linear2(d_model, d_ff, rng), linear3(d_ff, d_model, rng) {}
  Variable operator()(const Variable& x) const { return linear3(linear1(x) * silu(linear2(x))); }
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
    v("linear3", linear3);
  }
};

// The same layer, of which one part is forgotten in `visit`.
struct Forgetful : GatedFeedForward {
  using GatedFeedForward::GatedFeedForward;
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear3", linear3);
  }
};

struct Network : nn::Module {
  nn::Linear linear1, linear2;
  Network(i64 hidden, Rng& rng) : linear1(2, hidden, rng), linear2(hidden, 2, rng) {}
  Variable operator()(const Variable& x) const { return linear2(tanh(linear1(x))); }
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
  }
};

}  // namespace

TEST_CASE("exercise 5: a gated layer of one's own is proven by one line") {
  Rng rng(5);
  GatedFeedForward layer(4, 6, rng);
  nn::to(layer, f64);
  const std::vector<Tensor> x = {randn({3, 4}, rng, f64)};
  CHECK(nn::gradcheck(
      layer, [&](const Variable& v) { return layer(v); }, x));
  CHECK(layer.parameter_count() == 3 * 4 * 6 + 6 + 6 + 4);
}

TEST_CASE("exercise 5: a part that visit does not name is found by the same line") {
  Rng rng(5);
  Forgetful layer(4, 6, rng);
  nn::to(layer.linear2, f64);
  nn::to(layer, f64);
  const std::vector<Tensor> x = {randn({3, 4}, rng, f64)};
  CHECK_FALSE(nn::gradcheck(
      layer, [&](const Variable& v) { return layer(v); }, x));
}

TEST_CASE("exercise 5: SGD with momentum learns exclusive or") {
  Rng rng(5);
  Network network(8, rng);
  const Variable x = constant(Tensor::of<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}));
  const Tensor labels = Tensor::of<i32>({4}, {0, 1, 1, 0});
  optim::SGD sgd(network.parameters(), {.momentum = 0.9});
  for (i64 step = 1; step <= 400; ++step) {
    backward(cross_entropy(network(x), labels));
    sgd.step(optim::warmup_cosine(step, 0.3, 20, 400));
  }
  CHECK(same_bits(argmax(network(x).value()), labels));
  CHECK(cross_entropy(network(x), labels).item() < 0.1);
}
