// Chapter 2. A wrong answer to exercise 2.5: where something was there, it is written over and then added to.
// Expect: [0] is -4, should be -1
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
    copy_into(into.buffer, g);
    if (!into.is_new) add_in_place(into.buffer, g);
  }
};

Variable my_square(const Variable& x) { return apply(MySquare{}, x); }
