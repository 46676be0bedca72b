// Chapter 4. A wrong answer to exercise 4.2: the sum of each row does not keep its axis.
// Expect: do not broadcast (4 against 3
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

  void backward(const Tensor& dy, Grads& dx) { dx.add(0, y * (dy - sum(dy * y, {-1}))); }
};

Variable my_softmax(const Variable& x) { return apply(MySoftmax{}, x); }
