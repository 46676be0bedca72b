// Chapter 5. Bug 32: backward in half precision.
//
// A number of 16 bits (fp16) cannot be smaller than 2^-24, about 6e-8: what is below becomes 0. So that small gradients
// survive, the loss is made larger for backward, and the gradient smaller afterwards.
// Its symptoms:  apps/run gradcheck --bug 32
// Grade it:  apps/run exercise bug.32
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

// What is left of x in fp16. (Of its other numbers fp16 keeps three digits, here all.)
double half(double x) { return std::fabs(x) < 0x1p-25 ? 0 : x; }

struct MixedPrecision {
  double factor = 4096;
  double scaled(double loss) const { return loss * factor; }
  double unscaled(double gradient) const { return gradient / factor; }

  // dL/dw for L = (w x) / count, a mean of `count` terms: what backward gives to w x, and then to w.
  double gradient(double x, double count) const {
    const double dL = 1;
    const double dy = half(dL / count), dw = half(dy * x);
    return dw;
  }
};
