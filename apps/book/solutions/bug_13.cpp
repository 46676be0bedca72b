// Chapter 5. Solution of bug 13: another linear layer.
//
// y = x W^T + b for x [B, T, in], W [out, in] and b [out].
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct Linear {
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
    dx.add(2, sum(dy_rows, {0}));
  }
};

Variable my_linear(const Variable& x, const Variable& weight, const Variable& bias) {
  return apply(Linear{}, x, weight, bias);
}
