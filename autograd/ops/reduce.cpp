// Chapter 4. Sums, means and maxima over axes.
//
//   y = sum_i x_i         dx_i = dy
//   y = 1/n sum_i x_i     dx_i = dy / n
//   y = max_i x_i         dx_i = dy / (number of maxima) where x_i = y, else 0
// dy gets its reduced axes back, with size 1, and is repeated along them.
#include "autograd/ops/reduce.h"

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

struct Sum {
  static constexpr std::string_view name = "sum";
  Axes axes;
  bool keep_axes;
  Tensor forward(const Tensor& x) { return sum(x, axes, keep_axes); }
  void backward(const Tensor& dy, Grads& dx) {
    const Shape& shape = dx.shape(0);
    dx.add(0, broadcast_to(dy.reshape(reduced_shape(shape, axes, true, name)), shape));
  }
};

struct Mean {
  static constexpr std::string_view name = "mean";
  Axes axes;
  bool keep_axes;
  Tensor forward(const Tensor& x) { return mean(x, axes, keep_axes); }
  void backward(const Tensor& dy, Grads& dx) {
    const Shape& shape = dx.shape(0);
    const double n = static_cast<double>(shape.count()) / static_cast<double>(std::max<i64>(1, dy.count()));
    dx.add(0, broadcast_to((dy / n).reshape(reduced_shape(shape, axes, true, name)), shape));
  }
};

struct Max {
  static constexpr std::string_view name = "max";
  Axes axes;
  bool keep_axes;
  Saved x, y;  // y with its reduced axes kept
  Tensor forward(const Tensor& in) {
    x = in;
    Tensor largest = max(in, axes, keep_axes);
    y = largest.reshape(reduced_shape(in.shape(), axes, true, name));
    return largest;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor is_max =
        kernels::broadcast_map(x.get(), y.get(), name, [](auto a, auto b) { return decltype(a)(a == b); });
    const Tensor maxima = sum_to(is_max, y.get().shape());
    dx.add(0, is_max * (dy.reshape(maxima.shape()) / maxima));
  }
};

}  // namespace

Variable sum(const Variable& x, const Axes& axes, bool keep_axes) { return apply(Sum{axes, keep_axes}, x); }
Variable mean(const Variable& x, const Axes& axes, bool keep_axes) { return apply(Mean{axes, keep_axes}, x); }
Variable max(const Variable& x, const Axes& axes, bool keep_axes) { return apply(Max{axes, keep_axes, {}, {}}, x); }

}  // namespace orrery
