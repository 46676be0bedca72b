// Chapter 2. Exercise 2.4: an operation with two outputs.
//
// The forward is given, and has two outputs, sin x and cos x: write the backward, where dy[0] is the gradient of the
// loss with respect to the sine and dy[1] that with respect to the cosine. If the loss uses one output alone, the dy of
// the other one is undefined (dy[i].defined() is false) and must not be read.
// Grade it:  apps/run exercise 2.4
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
    if (dy[0].defined()) dx.add(0, dy[0]);  // YOUR CODE: this is not the gradient
  }
};

std::array<Variable, 2> my_sin_cos(const Variable& x) { return apply(MySinCos{}, x); }
