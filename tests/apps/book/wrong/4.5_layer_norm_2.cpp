// Chapter 4. A wrong answer to exercise 4.5: a sum where a mean belongs.
// Expect: [0, 0] is -0.0833
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
    const Tensor along_ones = mean(dy, {-1}, true), along_x_hat = sum(dy * x_hat, {-1}, true);
    dx.add(0, r * (dy - along_ones - x_hat * along_x_hat));
  }
};

Variable my_layer_norm(const Variable& x, double eps) { return apply(MyLayerNorm{eps, {}, {}}, x); }
