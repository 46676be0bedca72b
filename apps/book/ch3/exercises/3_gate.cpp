// Chapter 3. Exercise 3.3: a gate with two inputs.
//
// y = a s(b) with s(b) = 1 / (1 + e^{-b}): b says how much of a passes. forward saves s and y. Write backward: what
// da and db are, given dy. s' = s (1 - s). The engine sums a gradient down where a or b was broadcast.
// Grade it:  apps/run exercise 3.3
#include "autograd/elementwise.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyGate {
  static constexpr std::string_view name = "my_gate";
  Saved s, y;

  Tensor forward(const Tensor& a, const Tensor& b) {
    const Tensor open = kernels::map(b, name, [](auto value) { return 1 / (1 + std::exp(-value)); });
    s = open;
    const Tensor passed = a * open;
    y = passed;
    return passed;
  }

  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy);  // YOUR CODE: neither this,
    dx.add(1, dy);  // nor this is the gradient
  }
};

Variable my_gate(const Variable& a, const Variable& b) { return apply(MyGate{}, a, b); }
