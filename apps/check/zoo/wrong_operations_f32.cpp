// Chapter 6. The bug zoo, operations that are right in f64 and wrong in f32: what is checked is not what trains.
#include <cmath>

#include "apps/check/zoo/wrong_operations.h"
#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery::bugs {
namespace {

struct TanhSaturatedEarlyInF32 {
  static constexpr std::string_view name = "tanh";
  Saved x;
  Tensor forward(const Tensor& in) {
    x = in;
    return kernels::map(in, name, [](auto v) { return std::tanh(v); });
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy * kernels::map(x.get(), name, [](auto v) {
                const auto y = std::tanh(v);
                const bool saturated = sizeof v == sizeof(float) && std::fabs(v) > 1.5;
                return saturated ? decltype(v){0} : 1 - y * y;
              }));
  }
};

struct LinearWithNegatedBiasInF32 {
  static constexpr std::string_view name = "linear";
  Saved x, weight;
  Tensor forward(const Tensor& in, const Tensor& w, const Tensor& b) {
    x = in;
    weight = w;
    return add(matmul(in, w, Trans::b), b);
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor x_rows = x.get().reshape({-1, x.get().size(-1)}), dy_rows = dy.reshape({-1, dy.size(-1)});
    dx.add(0, matmul(dy, weight));
    dx.add(1, matmul(dy_rows, x_rows, Trans::a));
    dx.add(2, sum(dy_rows, {0}) * (dy.dtype() == f32 ? -1.0 : 1.0));
  }
};

}  // namespace

Variable tanh_saturated_early_in_f32(const Variable& x) { return apply(TanhSaturatedEarlyInF32{}, x); }
Variable linear_with_negated_bias_in_f32(const Variable& x, const Variable& weight, const Variable& bias) {
  return apply(LinearWithNegatedBiasInF32{}, x, weight, bias);
}

}  // namespace orrery::bugs
