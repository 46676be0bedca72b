// Chapter 4. Solution of exercise 4.4: cross entropy's backward, with targets that do not count.
//
// loss = mean of -log softmax(logits)_target over the rows whose target counts; a target of -1 does not count. The
// forward is given. Write the backward: from dy, the gradient of the loss (one number), to dx, of the shape of the
// logits [rows, K]. You have the saved probabilities p [rows, K], the targets, and `counted`, the number of rows that
// count. If none counts, the loss is 0, and so is dx.
#include <algorithm>

#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct MyCrossEntropy {
  static constexpr std::string_view name = "my_cross_entropy";
  std::vector<i64> targets;
  i64 counted = 0;
  Saved p;

  Tensor forward(const Tensor& logits) {
    const Tensor log_p = log_softmax(constant(logits)).value();
    p = softmax(constant(logits)).value();
    double loss = 0;
    for (size_t row = 0; row < targets.size(); ++row) {
      if (targets[row] < 0) continue;
      loss -= log_p(row, targets[row]);
      ++counted;
    }
    return full({}, counted == 0 ? 0 : loss / static_cast<double>(counted), logits.dtype());
  }

  void backward(const Tensor& dy, Grads& dx) {
    Tensor d = p.get().clone();
    for (size_t row = 0; row < targets.size(); ++row) {
      for (i64 k = 0; k < d.size(1); ++k) {
        if (targets[row] < 0) d(row, k) = 0;
        if (targets[row] == k) d(row, k) -= 1;
      }
    }
    dx.add(0, d * (dy.item() / static_cast<double>(std::max<i64>(counted, 1))));
  }
};

Variable my_cross_entropy(const Variable& logits, std::vector<i64> targets) {
  return apply(MyCrossEntropy{std::move(targets), 0, {}}, logits);
}
