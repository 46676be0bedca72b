// Chapter 4. Solution of bug 20: cross entropy.
//
// The mean of -log softmax(logits) at the target, over the targets that count: -100 is padding, and does not. logits
// are [..., K], targets i32 [...]. slice_into(row, x, 1, k, true) adds x at column k.
#include <algorithm>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  Tensor targets;
  Saved logits;
  Tensor forward(const Tensor& x) {
    logits = x;
    return orrery::cross_entropy(constant(x), targets).value();
  }
  void backward(const Tensor& dy, Grads& dx) {
    const i64 K = logits.get().size(-1);
    Tensor d = orrery::softmax(constant(logits.get())).value().clone();
    i64 counted = 0;
    for (i64 i = 0; i < targets.count(); ++i) {
      Tensor row = d.reshape({-1, K}).rows(i, i + 1);
      const i32 target = targets.data<i32>()[i];
      if (target == -100) {
        fill(row, 0);
      } else {
        slice_into(row, full({1, 1}, -1.0, row.dtype()), 1, target, true);
        ++counted;
      }
    }
    dx.add(0, d * (dy.item() / static_cast<double>(std::max<i64>(counted, 1))));
  }
};

Variable my_cross_entropy(const Variable& logits, const Tensor& targets) {
  return apply(CrossEntropy{targets, {}}, logits);
}
