// Chapter 2. Solution of exercise 2.4: an operation with two outputs.
//
// sin x and cos x together. Its forward is given, and returns both. Write its backward: dy[0] and dy[1] are the
// gradients of the loss with respect to the sine and to the cosine. An output that nothing was computed from has no
// gradient: its dy[i].defined() is false.
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
    if (dy[1].defined()) dx.add(0, -(dy[1] * sine.get()));
  }
};

std::array<Variable, 2> my_sin_cos(const Variable& x) { return apply(MySinCos{}, x); }
