// Chapter 4. Sums, means, maxima and minima over axes.
//
//   y = sum_i x_i         dx_i = dy
//   y = 1/n sum_i x_i     dx_i = dy / n
//   y = max_i x_i         dx_i = dy / (number of maxima) where x_i = y, else 0; min likewise
//   y_i = x_0 + ... + x_i       dx_i = dy_i + dy_{i+1} + ...
//   variance      sum_i (x_i - mean)^2 / (n - correction), in two passes: one pass would cancel. By the mean
//                 the slope is -2 sum_i (x_i - mean) / ... = 0, so the mean is a constant
//   normalize     x / sqrt(max(x . x, eps^2)). The limit is inside the root, where its slope at 0 is 0 times a number;
//                 outside it would be 0 times the infinite slope of the root, NaN.
//   log_sum_exp   m + ln sum_i e^{x_i - m} with m = max x, so that no power exceeds 1. y does not depend on m, so m is
//                 a constant: dx_i = dy e^{x_i - y}
// dy gets its reduced axes back, with size 1, and is repeated along them.
#include "autograd/ops/reduce.h"

#include <limits>

#include "autograd/apply.h"
#include "autograd/ops/activation.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/layout.h"
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

template <bool smallest> struct Extreme {
  static constexpr std::string_view name = smallest ? "min" : "max";
  Axes axes;
  bool keep_axes;
  Saved x, y;  // y with its reduced axes kept
  Tensor forward(const Tensor& in) {
    x = in;
    Tensor found = smallest ? min(in, axes, keep_axes) : max(in, axes, keep_axes);
    y = found.reshape(reduced_shape(in.shape(), axes, true, name));
    return found;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor is_found =
        kernels::broadcast_map(x.get(), y.get(), name, [](auto a, auto b) { return decltype(a)(a == b); });
    const Tensor number = sum_to(is_found, y.get().shape());
    dx.add(0, is_found * (dy.reshape(number.shape()) / number));
  }
};

struct CumulativeSum {
  static constexpr std::string_view name = "cumulative_sum";
  i64 axis;
  Tensor forward(const Tensor& x) { return cumulative_sum(x, axis); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, flip(cumulative_sum(flip(dy, axis), axis), axis)); }
};

}  // namespace

Variable sum(const Variable& x, const Axes& axes, bool keep_axes) { return apply(Sum{axes, keep_axes}, x); }
Variable mean(const Variable& x, const Axes& axes, bool keep_axes) { return apply(Mean{axes, keep_axes}, x); }
Variable max(const Variable& x, const Axes& axes, bool keep_axes) {
  return apply(Extreme<false>{axes, keep_axes, {}, {}}, x);
}
Variable min(const Variable& x, const Axes& axes, bool keep_axes) {
  return apply(Extreme<true>{axes, keep_axes, {}, {}}, x);
}
Variable cumulative_sum(const Variable& x, i64 axis) { return apply(CumulativeSum{axis}, x); }

Variable variance(const Variable& x, const Axes& axes, bool keep_axes, double correction) {
  double n = 1;
  tape::explained("variance", std::array{&x}, [&] {
    const Shape kept = reduced_shape(x.shape(), axes, true, "variance");
    for (int axis = 0; axis < kept.rank(); ++axis) n *= static_cast<double>(kept[axis] == 1 ? x.size(axis) : 1);
    check(n > correction, "variance", "needs more than ", correction, " numbers, has ", n);
  });
  const Variable from_mean = x - constant(mean(x.value(), axes, true));
  return sum(from_mean * from_mean, axes, keep_axes) / (n - correction);
}

Variable normalize(const Variable& x, double eps) {
  tape::explained("normalize", std::array{&x}, [&] {
    check(eps > 0 && is_normal(eps * eps, x.dtype()), "normalize", "eps^2 must be a positive number of ", x.dtype(),
          ", got eps ", eps);
  });
  return x / sqrt(clamp(sum(x * x, {-1}, true), eps * eps, std::numeric_limits<double>::infinity()));
}

Variable log_sum_exp(const Variable& x, const Axes& axes, bool keep_axes) {
  const Tensor largest = max(x.value(), axes, true), zero = zeros({}, x.dtype());
  const Variable m = constant(where(largest - largest == 0, largest, zero));  // infinity - infinity is NaN
  const Variable y = log(sum(exp(x - m), axes, true)) + m;
  return keep_axes ? y : reshape(y, reduced_shape(x.shape(), axes, false, "log_sum_exp"));
}

}  // namespace orrery
