// Chapter 2. A wrong answer to exercise 2.4: the gradient of the second output is forgotten.
// Expect: [0] is 1, should be 0
#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MySinCos {
  static constexpr std::string_view name = "my_sin_cos";
  Saved sine, cosine;

  std::array<Tensor, 2> forward(const Tensor& x) {
    const Tensor s = kernels::map(x, name, [](auto value) { return std::sin(value); });
    const Tensor c = kernels::map(x, name, [](auto value) { return std::cos(value); });
    sine = s;
    cosine = c;
    return {s, c};
  }

  void backward(const std::array<Tensor, 2>& dy, Grads& dx) {
    if (dy[0].defined()) dx.add(0, dy[0] * cosine.get());
  }
};

std::array<Variable, 2> my_sin_cos(const Variable& x) { return apply(MySinCos{}, x); }
