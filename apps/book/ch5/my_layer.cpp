// Chapter 5. An operation and a layer of the reader's own, proven.
// Question: what does it take to add an operation and a layer, and to know that their gradients are right?
// Answer: one struct and one line of proof each. Where backward forgets a factor 2, the proof says "ratio 0.5000".
// Read next: optim/adam.h
#include <iostream>

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"
#include "nn/check/proof.h"
#include "nn/layers/linear.h"

using namespace orrery;

namespace {
struct SquaredRelu {  // y = max(0, x)^2, dx = 2 max(0, x) dy       "Primer" (So et al. 2021)
  static constexpr std::string_view name = "squared_relu";
  Saved positive;
  Tensor forward(const Tensor& x) {
    const Tensor p = kernels::map(x, name, [](auto value) { return value > 0 ? value : 0; });
    positive = p;
    return p * p;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, positive.get() * dy * 2.0); }
};
Variable squared_relu(const Variable& x) { return apply(SquaredRelu{}, x); }

struct WrongSquaredRelu : SquaredRelu {
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, positive.get() * dy); }  // the 2 is forgotten
};

struct PrimerFeedForward : nn::Module {
  nn::Linear linear1, linear2;
  PrimerFeedForward(i64 d_model, i64 d_ff, Rng& rng) : linear1(d_model, d_ff, rng), linear2(d_ff, d_model, rng) {}
  Variable operator()(const Variable& x) const { return linear2(squared_relu(linear1(x))); }
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
  }
};
}  // namespace

int main() {
  const auto make = [](Rng& rng) { return PrimerFeedForward(4, 6, rng); };
  const auto run = [](const PrimerFeedForward& layer, const Variable& x) { return layer(x); };
  const Proof op = prove("squared_relu", squared_relu, {{3, 4}});
  const Proof whole = nn::prove("PrimerFeedForward", make, run, {{3, 4}});
  const Proof wrong =
      prove("the 2 forgotten", [](const Variable& x) { return apply(WrongSquaredRelu{}, x); }, {{3, 4}});
  std::cout << op << '\n' << whole << '\n' << wrong << '\n';
  return op && whole && !wrong ? 0 : 1;
}
