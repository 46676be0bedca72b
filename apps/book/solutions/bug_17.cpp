// Chapter 4. Solution of bug 17: the largest number.
//
// The largest number along some axes, as in max(x, {-1}).
#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct Max {
  static constexpr std::string_view name = "max";
  Axes axes;
  bool keep_axes;
  Saved x, y;
  Tensor forward(const Tensor& in) {
    x = in;
    y = max(in, axes, true);
    return max(in, axes, keep_axes);
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor is_max =
        kernels::broadcast_map(x.get(), y.get(), name, [](auto a, auto b) { return decltype(a)(a == b); });
    dx.add(0, is_max / sum(is_max, axes, true) * dy.reshape(y.get().shape()));
  }
};

Variable my_max(const Variable& x, const Axes& axes, bool keep_axes) { return apply(Max{axes, keep_axes, {}, {}}, x); }
