// Chapter 5. Dropout: in training, sets each number to 0 with probability p and scales the others to keep the mean.
//
// Paper, section 5.4: "We apply dropout to the output of each sub-layer, before it is added to the sub-layer input and
// normalized. In addition, we apply dropout to the sums of the embeddings and the positional encodings in both the
// encoder and decoder stacks."
//   y_i = x_i / (1 - p) with probability 1 - p, else 0      so the mean of y_i over all masks is x_i
// The Pass determines which numbers: equal passes draw equal masks. Outside training, or if p = 0, x stays as it is.
#pragma once

#include "autograd/ops/dropout.h"
#include "nn/module.h"
#include "nn/pass.h"

namespace orrery::nn {

struct Dropout : Module {
  double p;

  explicit Dropout(double p) : p(p) { check(p >= 0 && p < 1, "dropout", "the probability must be in [0, 1), not ", p); }
  /// The probability in effect: 0 outside training. For operations that apply dropout themselves.
  double active(const Pass& pass) const { return pass.train ? p : 0; }
  Variable operator()(const Variable& x, Pass& pass) const {
    return active(pass) > 0 ? dropout(x, p, pass.next_draw()) : x;
  }
  void visit(Visitor&) override {}
};

}  // namespace orrery::nn
