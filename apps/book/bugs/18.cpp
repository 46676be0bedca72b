// Chapter 5. Bug 18: dropout.
//
// In training a share p of the numbers becomes 0, and the others are divided by 1 - p.
// Its symptoms:  apps/run gradcheck --bug 18
// Grade it:  apps/run exercise bug.18
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

// x with a share p of its numbers set to 0, the others divided by 1 - p; equal draws choose the same numbers.
Tensor dropped(const Tensor& x, double p, const Draw& draw) { return orrery::dropout(constant(x), p, draw).value(); }

struct Dropout {
  static constexpr std::string_view name = "dropout";
  double p;
  Draw draw;
  Tensor forward(const Tensor& x) { return dropped(x, p, draw); }
  void backward(const Tensor& dy, Grads& dx) {
    ++draw.index;
    dx.add(0, dropped(dy, p, draw));
  }
};

Variable my_dropout(const Variable& x, double p, const Draw& draw) { return apply(Dropout{p, draw}, x); }
