// Chapter 3. A wrong answer to exercise 3.3: db without the factor 1 - s.
// Expect: [0] is 6, should be 1.5
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
    dx.add(0, dy * s.get());
    dx.add(1, dy * y.get());
  }
};

Variable my_gate(const Variable& a, const Variable& b) { return apply(MyGate{}, a, b); }
