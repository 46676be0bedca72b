// Chapter 5. Initialisers: the random numbers that weights start from, by name.
//
// The paper does not name its initialisation. torch.nn.Transformer draws every matrix from Glorot and Bengio's
// ("Xavier") distribution, which keeps the variance of activations and of gradients about equal from layer to layer:
//   xavier           W ~ U(-a, a), a = sqrt(6 / (fan_in + fan_out)); the bias of a Linear as in pytorch_linear
//   pytorch_linear   W, b ~ U(-1/sqrt(fan_in), 1/sqrt(fan_in)), the default of torch.nn.Linear
//   normal_001       W ~ N(0, 0.01^2), b = 0, as many tutorials write it
//   normal_002       W ~ N(0, 0.02^2), b = 0, as in GPT
// A weight is [fan_out, fan_in], a bias [fan_out]. The packed in_proj of attention counts as one matrix, as in PyTorch.
#pragma once

#include "core/random.h"
#include "core/tensor.h"

namespace orrery::nn {

enum class Init { xavier, pytorch_linear, normal_001, normal_002 };

/// A weight [fan_out, fan_in], f32.
Tensor initial_weight(Init init, i64 fan_out, i64 fan_in, Rng& rng);
/// The bias [fan_out] of a Linear with `fan_in` inputs, f32.
Tensor initial_bias(Init init, i64 fan_out, i64 fan_in, Rng& rng);
/// The same number everywhere, f32: nothing is drawn, and `rng` only says whether the tensor needs memory.
Tensor initial_constant(const Shape& shape, double value, const Rng& rng);
/// Rows [count, d_model] of N(0, 1/d_model): after scaling by sqrt(d_model), each number has variance 1.
Tensor initial_embedding(i64 count, i64 d_model, Rng& rng);

}  // namespace orrery::nn
