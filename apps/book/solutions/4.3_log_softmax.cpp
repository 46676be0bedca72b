// Chapter 4. Solution of exercise 4.3: log-softmax that keeps its digits, and its backward.
//
// y_i = x_i - log sum_j e^{x_j} over the last axis. Write the forward so that it is right for numbers such as 1000 and
// -1000 in the same row, where e^x is infinite or 0; then the backward, from dy to dx, with the saved output y.
// max(x, {-1}, true) is the largest number of each row, with the axis kept; exp_of and log_of work element by element.
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

  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy - exp_of(y) * sum(dy, {-1}, true)); }
};

Variable my_log_softmax(const Variable& x) { return apply(MyLogSoftmax{}, x); }
