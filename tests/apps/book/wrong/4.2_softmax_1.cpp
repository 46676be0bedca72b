// Chapter 4. A wrong answer to exercise 4.2: as if y_i depended on x_i alone.
// Expect: [0, 1] is 0
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MySoftmax {
  static constexpr std::string_view name = "my_softmax";
  Saved y;

  Tensor forward(const Tensor& x) {
    const Tensor e = exp(constant(x - max(x, {-1}, true))).value();
    return y = e / sum(e, {-1}, true);
  }

  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * y * (full(y.get().shape(), 1, y.get().dtype()) - y)); }
};

Variable my_softmax(const Variable& x) { return apply(MySoftmax{}, x); }
