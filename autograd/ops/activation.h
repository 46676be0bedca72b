// Chapter 3. Activation functions, the nonlinearities between linear maps, and other functions of one number.
//
// Each but glu is applied to every element of x, which is f32 or f64: y has the shape of x.
#pragma once

#include "autograd/variable.h"

namespace orrery {

Variable tanh(const Variable& x);
/// s(x) = 1 / (1 + e^{-x}).
Variable sigmoid(const Variable& x);
/// max(0, x).
Variable relu(const Variable& x);
/// x Phi(x), where Phi is the distribution function of N(0, 1).
Variable gelu(const Variable& x);
/// The approximation of gelu by tanh with which GPT-2 was trained (autograd/ops/formulas.h).
Variable gelu_tanh(const Variable& x);
/// x s(x); also called swish.
Variable silu(const Variable& x);
/// ln(1 + e^x), a smooth relu.
Variable softplus(const Variable& x);
/// x where x > 0, else alpha (e^x - 1). The derivative at 0 is alpha, as in PyTorch.
Variable elu(const Variable& x, double alpha = 1);
/// |x|. The derivative at 0 is 0.
Variable abs(const Variable& x);
/// x cut to [low, high], either of which may be infinite. The derivative is 1 at both ends, 0 beyond them; as in
/// PyTorch. Error: low > high, or NaN.
Variable clamp(const Variable& x, double low, double high);
Variable sin(const Variable& x);
Variable cos(const Variable& x);
/// The gated linear unit: a s(b) for x = [a | b], [..., 2 C] to [..., C]. Error: an odd number of columns.
Variable glu(const Variable& x);

}  // namespace orrery
