// Chapter 8. Calls with shapes drawn at random, most of them cut into several chunks: what their tables share.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"
#include "core/machine/parallel.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery::promises {

using Variables = std::vector<Variable>;

struct Input {
  Shape shape;
  bool positive = false;  ///< from [0.5, 2.5] rather than N(0, 1)
};

/// One call of an operation: the shapes of its inputs, and what to do with them.
struct Call {
  std::vector<Input> inputs;
  std::function<Variable(const Variables&)> function;
  i64 tasks = 1;  ///< pieces its matrix products are cut into
};

/// Pieces that the products of dx = dy W and dW = dy^T x are cut into, the more; x is [m, in], W [out, in].
inline i64 gradient_tiles(i64 m, i64 out, i64 in) {
  return std::max(kernels::gemm_tiles(m, in, out, Trans::none), kernels::gemm_tiles(out, in, m, Trans::a));
}

struct RandomOperation {
  std::string name;  ///< as it stands in ops.h
  std::function<Call(Rng&)> draw;
};

/// Elements of a tensor: every fourth time few, else one to three chunks of an elementwise loop.
inline i64 draw_count(Rng& rng) {
  return rng.integer(0, 4) == 0 ? rng.integer(1, 4000) : rng.integer(elementwise_grain / 2, 3 * elementwise_grain);
}

/// About `count` elements along `rank` axes, in any proportion.
inline Shape draw_shape(Rng& rng, int rank, i64 count) {
  std::vector<i64> sizes(static_cast<size_t>(rank), 1);
  i64 left = count;
  for (int axis = 0; axis + 1 < rank; ++axis) {
    const double share = rng.uniform() * 2 / rank;
    sizes[static_cast<size_t>(axis)] = std::max<i64>(1, std::llround(std::pow(static_cast<double>(count), share)));
    sizes[static_cast<size_t>(axis)] = std::min(sizes[static_cast<size_t>(axis)], left);
    left /= sizes[static_cast<size_t>(axis)];
  }
  if (rank > 0) sizes.back() = std::max<i64>(1, left);
  for (i64 i = rank - 1; i > 0; --i)
    std::swap(sizes[static_cast<size_t>(i)], sizes[static_cast<size_t>(rng.integer(0, i + 1))]);
  return Shape(std::span<const i64>(sizes));
}

inline Shape draw_shape(Rng& rng) { return draw_shape(rng, static_cast<int>(rng.integer(1, 5)), draw_count(rng)); }

/// A shape that broadcasts to `shape`: some sizes become 1, some leading axes go.
inline Shape draw_operand(Rng& rng, const Shape& shape) {
  std::vector<i64> sizes(shape.begin(), shape.end());
  for (i64& size : sizes) size = rng.integer(0, 3) == 0 ? 1 : size;
  sizes.erase(sizes.begin(), sizes.begin() + (rng.integer(0, 3) == 0 ? rng.integer(0, shape.rank()) : 0));
  return Shape(std::span<const i64>(sizes));
}

inline Axes draw_axes(Rng& rng, int rank) {
  Axes axes;
  for (i64 axis = 0; axis < rank; ++axis)
    if (rng.integer(0, 2) == 0) axes.push_back(axis);
  return axes;
}

inline Tensor draw_ids(Rng& rng, i64 high, const Shape& shape) { return randint(0, high, shape, rng); }

inline Mask draw_padding(Rng& rng, i64 B, i64 m) { return Mask::padding(randint(0, m + 1, {B}, rng)); }

inline Mask draw_mask(Rng& rng, i64 B, i64 h, i64 n, i64 m) {
  Mask mask;
  if (rng.integer(0, 2) == 0) mask = mask & Mask::causal();
  if (rng.integer(0, 2) == 0) mask = mask & draw_padding(rng, B, m);
  if (rng.integer(0, 4) == 0) mask = mask & Mask::window(rng.integer(0, m), rng.integer(0, m));
  if (rng.integer(0, 4) == 0) mask = mask & Mask::allow(draw_ids(rng, 3, {1, rng.integer(0, 2) == 0 ? 1 : h, n, m}));
  return mask;
}

}  // namespace orrery::promises
