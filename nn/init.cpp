// Chapter 5. Initialisers: weights are drawn in the order in which layers are built, so a seed determines the model.
#include "nn/init.h"

#include <algorithm>
#include <cmath>

#include "core/tensor_ops.h"

namespace orrery::nn {
namespace {

double root(i64 n) { return std::sqrt(static_cast<double>(std::max<i64>(n, 1))); }

// Scaled in place: a second tensor would leave a hole in memory between the weights.
Tensor normal(const Shape& shape, double deviation, Rng& rng) {
  Tensor x = randn(shape, rng);
  if (!rng.draws_shapes()) scale_in_place(x, deviation);
  return x;
}

Tensor uniform(const Shape& shape, double bound, Rng& rng) { return rand_uniform(shape, -bound, bound, rng); }

}  // namespace

Tensor initial_weight(Init init, i64 fan_out, i64 fan_in, Rng& rng) {
  const Shape shape{fan_out, fan_in};
  switch (init) {
    case Init::xavier: return uniform(shape, std::sqrt(6.0) / root(fan_in + fan_out), rng);
    case Init::pytorch_linear: return uniform(shape, 1.0 / root(fan_in), rng);
    case Init::normal_001: return normal(shape, 0.01, rng);
    case Init::normal_002: return normal(shape, 0.02, rng);
  }
  fail("initial_weight", "no such initialiser");
}

Tensor initial_constant(const Shape& shape, double value, const Rng& rng) {
  return rng.draws_shapes() ? Tensor::outline(shape) : full(shape, value);
}

Tensor initial_bias(Init init, i64 fan_out, i64 fan_in, Rng& rng) {
  const bool normal = init == Init::normal_001 || init == Init::normal_002;
  return normal ? initial_constant({fan_out}, 0, rng) : uniform({fan_out}, 1.0 / root(fan_in), rng);
}

Tensor initial_embedding(i64 count, i64 d_model, Rng& rng) {
  return normal({count, d_model}, 1.0 / root(d_model), rng);
}

}  // namespace orrery::nn
