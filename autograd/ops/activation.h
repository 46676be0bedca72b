// Chapter 3. Activation functions: the nonlinearities between linear maps.
//
// Serves: nn/layers/feed_forward.h
#pragma once

#include "autograd/variable.h"

namespace orrery {

Variable tanh(const Variable& x);
Variable sigmoid(const Variable& x);
Variable relu(const Variable& x);
Variable gelu(const Variable& x);       // exact: x Phi(x)
Variable gelu_tanh(const Variable& x);  // GPT-2's approximation
Variable silu(const Variable& x);

}  // namespace orrery
