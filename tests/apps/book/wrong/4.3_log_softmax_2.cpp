// Chapter 4. A wrong answer to exercise 4.3: the backward is softmax's own, with the sum of dy y.
// Expect: FAILED  dx where only y_0 counts
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

Tensor exp_of(const Tensor& x) { return exp(constant(x)).value(); }
Tensor log_of(const Tensor& x) { return log(constant(x)).value(); }

struct MyLogSoftmax {
  static constexpr std::string_view name = "my_log_softmax";
  Saved y;

  Tensor forward(const Tensor& x) {
    const Tensor shifted = x - max(x, {-1}, true);
    return y = shifted - log_of(sum(exp_of(shifted), {-1}, true));
  }

  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy - exp_of(y) * sum(dy * y, {-1}, true)); }
};

Variable my_log_softmax(const Variable& x) { return apply(MyLogSoftmax{}, x); }
