// Chapter 4. A wrong answer to exercise 4.5: means over all rows together.
// Expect: FAILED  the sum of dx in each of three rows
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
    const Tensor along_ones = mean(dy), along_x_hat = mean(dy * x_hat);
    dx.add(0, r * (dy - along_ones - x_hat * along_x_hat));
  }
};

Variable my_layer_norm(const Variable& x, double eps) { return apply(MyLayerNorm{eps, {}, {}}, x); }
