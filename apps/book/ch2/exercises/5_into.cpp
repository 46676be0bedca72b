// Chapter 2. Exercise 2.5: who writes and who adds.
//
// y = x^2. This backward does not give its gradient g to the engine by dx.add(0, g): it writes g into the gradient of
// x itself. `dx.into(0)` gives that gradient as `into.buffer`. If `into.is_new`, nobody has written to it yet, and its
// contents are arbitrary. Otherwise it holds what others gave. copy_into(buffer, g) and add_in_place(buffer, g) are in
// core/tensor_ops.h.
// Grade it:  apps/run exercise 2.5
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MySquare {
  static constexpr std::string_view name = "my_square";
  Saved x;

  Tensor forward(const Tensor& in) {
    x = in;
    return in * in;
  }

  void backward(const Tensor& dy, Grads& dx) {
    if (!dx.wanted(0)) return;
    const Tensor g = dy * x.get() * 2.0;
    const GradientBuffer into = dx.into(0);
    fill(into.buffer, 0);  // YOUR CODE: g has to get there
  }
};

Variable my_square(const Variable& x) { return apply(MySquare{}, x); }
