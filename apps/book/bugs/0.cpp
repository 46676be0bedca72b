// Chapter 4. Bug 0: a worked example, RMS norm.
//
// y = x / sqrt(mean(x^2)) over the last axis. apps/book/bugs/README.md finds the mistake step by step.
// Grade it:  apps/run exercise bug.0
#include "autograd/apply.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  Saved normal, reciprocal;
  Tensor forward(const Tensor& x) {
    const Tensor r = pow(constant(mean(x * x, {-1}, true)), -0.5).value();
    normal = x * r;
    reciprocal = r;
    return x * r;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor inner = sum(dy * normal.get(), {-1}, true);
    dx.add(0, (dy - normal.get() * inner) * reciprocal.get());
  }
};

Variable my_rms_norm(const Variable& x) { return apply(RmsNorm{}, x); }
