// Chapter 4. Solution of bug 7: layer norm.
//
// y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, over the last axis. dx.add sums over the axes along which an
// input was repeated.
#include <cmath>

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  double eps;
  Saved normal, reciprocal, weight;

  Tensor forward(const Tensor& x, const Tensor& w, const Tensor& b) {
    const Tensor centred = x - mean(x, {-1}, true);
    const Tensor r = kernels::map(mean(centred * centred, {-1}, true), name, [eps = eps](auto variance) {
      return decltype(variance)(1 / std::sqrt(variance + eps));
    });
    const Tensor n = centred * r;
    normal = n;
    reciprocal = r;
    weight = w;
    return n * w + b;
  }
  void add_parameters(const Tensor& dy, Grads& dx) const {
    dx.add(1, dy * normal.get());
    dx.add(2, dy);
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor g = dy * weight.get(), inner = mean(g * normal.get(), {-1}, true);
    dx.add(0, (g - mean(g, {-1}, true) - normal.get() * inner) * reciprocal.get());
    add_parameters(dy, dx);
  }
};

Variable my_layer_norm(const Variable& x, const Variable& weight, const Variable& bias, double eps) {
  return apply(LayerNorm{eps, {}, {}, {}}, x, weight, bias);
}
