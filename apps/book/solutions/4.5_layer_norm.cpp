// Chapter 4. Solution of exercise 4.5: layer norm's backward.
//
// y = x^ over the last axis, with x^ = (x - mean(x)) r and r = 1 / sqrt(var(x) + eps); there is no weight and no bias.
// The forward is given. Write the backward: from dy to dx. You have the saved x^ and r, of shapes [..., n] and
// [..., 1]. mean(x, {-1}, true) is the mean of each row, with the axis kept.
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyLayerNorm {
  static constexpr std::string_view name = "my_layer_norm";
  double eps;
  Saved x_hat, r;

  Tensor forward(const Tensor& x) {
    const Tensor centred = x - mean(x, {-1}, true), variance = mean(centred * centred, {-1}, true);
    r = pow(constant(variance) + eps, -0.5).value();
    x_hat = centred * r;
    return x_hat;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const Tensor along_ones = mean(dy, {-1}, true), along_x_hat = mean(dy * x_hat, {-1}, true);
    dx.add(0, r * (dy - along_ones - x_hat * along_x_hat));
  }
};

Variable my_layer_norm(const Variable& x, double eps) { return apply(MyLayerNorm{eps, {}, {}}, x); }
