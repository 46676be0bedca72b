// Chapter 2. Bug 31: gradient descent on some parameters.
//
// A step moves each parameter against its gradient, and prepares the next step. backward(y, dy) adds to the gradients
// that are there.
// Its symptoms:  apps/run gradcheck --bug 31
// Grade it:  apps/run exercise bug.31
#include <vector>

#include "autograd/variable.h"
#include "core/tensor_ops.h"

using namespace orrery;

void zero_grad(std::vector<Variable>& parameters) {
  for (Variable& p : parameters) {
    Tensor g = p.gradient();
    g = zeros(g.shape(), g.dtype());
  }
}

void my_step(std::vector<Variable>& parameters, double rate) {
  for (Variable& p : parameters) add_in_place(p.mutable_value(), p.gradient() * -rate);
  zero_grad(parameters);
}
