// Chapter 5. Solution of bug 4: a linear layer.
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
    return matmul(in, w, Trans::b) + b;
  }
  void backward(const Tensor& dy, Grads& dx) {  // dy [B, T, out]
    const Tensor rows = x.get().reshape({-1, x.get().size(-1)}), d = dy.reshape({rows.size(0), dy.size(-1)});
    dx.add(0, matmul(dy, weight.get()));
    dx.add(1, matmul(d, rows, Trans::a));
    dx.add(2, sum(dy, {0, 1}));
  }
};

Variable my_linear(const Variable& x, const Variable& weight, const Variable& bias) {
  return apply(Linear{}, x, weight, bias);
}
