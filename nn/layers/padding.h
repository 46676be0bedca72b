// Chapter 6. Padding that cannot spread NaN: what layers do with x before they multiply by it.
//
// Serves: nn/attention/attention.h
#pragma once

#include "autograd/ops/attention.h"
#include "autograd/ops/layout.h"
#include "core/mask.h"

namespace orrery::nn {

/// x [B, T, D], with padding set to 0 if it contains NaN, infinity or huge numbers. The gradient at padded positions is
/// 0, but dW = dy^T x multiplies this 0 by x, and 0 times NaN or infinity is NaN.
inline Variable with_harmless_padding(const Variable& x, const Mask& mask) {
  if (!mask.has_padding() || padding_is_moderate(x.value(), mask)) return x;
  const auto [B, T, D] = dims<3>(x.value(), "padding");
  return reshape(zero_padding(reshape(x, {B, 1, T, D}), mask), {B, T, D});
}

}  // namespace orrery::nn
