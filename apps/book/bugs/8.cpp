// Chapter 2. Bug 8: the exponential function.
//
// y = e^x, whose derivative is y itself.
// Its symptoms:  apps/run gradcheck --bug 8
// Grade it:  apps/run exercise bug.8
#include <cmath>

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct Exp {
  static constexpr std::string_view name = "exp";
  Tensor y;
  Tensor forward(const Tensor& x) {
    return y = kernels::map(x, name, [](auto v) { return std::exp(v); });
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * y); }
};

Variable my_exp(const Variable& x) { return apply(Exp{{}}, x); }
