// Chapter 6. Padding that cannot spread NaN: what layers do with padded rows when they enter.
//
// No real position sees a padded one, and the gradient there is 0. But whatever multiplies all rows makes NaN of it
// again, since 0 times NaN or infinity is NaN: dW = dy^T x of a linear map, dgamma = sum dy x of a norm. So each layer
// that takes a mask, and each model that knows its padding, lets rows in through `with_harmless_padding`. Only padded
// rows are looked at. Behind the first layer of a stack they are moderate, so no other layer copies anything. What
// several layers read, such as a decoder's memory, comes through once for all of them: then their gradients are added
// up in the same order, whatever the padding holds.
#pragma once

#include "autograd/ops/attention.h"
#include "autograd/ops/layout.h"
#include "core/mask.h"

namespace orrery::nn {

/// x [B, T, D], with padding set to 0 if it contains NaN, infinity or huge numbers (`padding_is_moderate`), and then
/// with the gradient 0 there. Only the padding of `mask` is used. Errors: lengths that do not fit x.
inline Variable with_harmless_padding(const Variable& x, const Mask& mask) {
  if (!mask.has_padding() || padding_is_moderate(x.value(), mask)) return x;
  const auto [B, T, D] = dims<3>(x.value(), "padding");
  return reshape(zero_padding(reshape(x, {B, 1, T, D}), mask), {B, T, D});
}

}  // namespace orrery::nn
