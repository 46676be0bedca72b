// Chapter 8. Packing for the kernels of pair_kernels.h: bf16, two neighbours along the inner index in 32 bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/products/bf16.h"
#include "core/products/packing.h"
#include "core/products/pair_kernels.h"

namespace orrery::kernels {

/// A square of 16 rows and 16 pairs of `from`, which has `rows` rows and `depth` columns; zeros beyond. A row of `to`,
/// `stride` apart, holds the pairs of a row or, with `by_pairs`, a pair of each row.
static void pack_square(const Strided<float>& from, i64 rows, i64 depth, bool by_pairs, u32* to, i64 stride) {
  constexpr i64 size = pairs_in_step, lanes = std::min<i64>(vector_bytes, 32) / sizeof(u32);
  using Vector = VectorOf<u32, lanes>::type;
  const auto bits = [](float x) { return std::bit_cast<u32>(rounded_to_bf16(x)); };
  alignas(64) u32 pairs[size][size];
  const bool along_rows = from.column == 1, whole = rows >= size && depth >= 2 * size;
  if (whole && along_rows) {
    for (i64 r = 0; r < size; ++r)
      for (i64 p = 0; p < size; ++p) {
        const float* x = from.data + r * from.row + 2 * p;
        pairs[r][p] = bits(x[0]) >> 16 | bits(x[1]);
      }
  } else if (whole && from.row == 1) {
    for (i64 p = 0; p < size; ++p)
      for (i64 r = 0; r < size; ++r) {
        const float* x = from.data + 2 * p * from.column + r;
        pairs[p][r] = bits(x[0]) >> 16 | bits(x[from.column]);
      }
  } else {
    std::fill_n(&pairs[0][0], size * size, 0u);
    for (i64 r = 0; r < std::min(rows, size); ++r)
      for (i64 p = 0; p < std::min(depth, 2 * size); ++p) {
        const u32 x = bits(from.data[r * from.row + p * from.column]);
        (along_rows ? pairs[r][p / 2] : pairs[p / 2][r]) |= p % 2 == 0 ? x >> 16 : x;
      }
  }
  const bool transposes = by_pairs == along_rows;
  for (i64 i = 0; i < size; i += lanes)
    for (i64 j = 0; j < size; j += lanes) {
      Vector v[lanes];
      for (i64 r = 0; r < lanes; ++r) v[r] = load<Vector>(&pairs[i + r][j]);
      if (transposes) transpose_vectors<lanes>(v);
      for (i64 r = 0; r < lanes; ++r) store(v[r], transposes ? to + (j + r) * stride + i : to + (i + r) * stride + j);
    }
}

/// The form of TileProduct (packed_product.cpp) for a kernel of pairs.
struct Pairs {
  using Packed = u32;
  static constexpr i64 rows = pair_block, width = pair_block, step = pair_block, bytes = 2;
  static constexpr bool reads_in_place = false;
  static i64 stored(i64 depth) { return (depth + step - 1) / step * pairs_in_step; }

  PairKernel kernel;
  void begin() const { kernel.begin(); }
  void end() const { kernel.end(); }

  static void pack_rows(const Strided<float>& from, i64 count, i64 depth, u32* to) {
    for (i64 first = 0; first < count; first += rows)
      for (i64 p = 0; p < depth; p += step, to += pair_block * pairs_in_step)
        for (i64 i = 0; i < rows; i += pairs_in_step)
          pack_square(part_from(from, first + i, p), count - first - i, depth - p, false, to + i * pairs_in_step,
                      pairs_in_step);
  }
  static void pack_strips(const Strided<float>& from, i64 count, i64 depth, u32* to) {
    for (i64 first = 0; first < count; first += width)
      for (i64 p = 0; p < depth; p += step, to += pair_block * pairs_in_step)
        for (i64 j = 0; j < width; j += pairs_in_step)
          pack_square(part_from(from, first + j, p), count - first - j, depth - p, true, to + j, pair_block);
  }

  // Blocks at the edges are computed whole, in memory of their own.
  void multiply(const u32* block, const u32* strip, const Mat<float>& c, i64 depth, bool add) const {
    const i64 steps = stored(depth) / pairs_in_step;
    for (i64 i = 0; i < c.rows; i += rows, block += rows * stored(depth)) {
      const Mat<float> part = part_of(c, {i, std::min(c.rows, i + rows), 0, c.cols});
      if (part.rows == rows && part.cols == width) {
        kernel.block(block, strip, part.data, part.stride, steps, add);
        continue;
      }
      alignas(64) float whole[rows * width] = {};
      for (i64 r = 0; r < part.rows && add; ++r) std::copy_n(part.data + r * part.stride, part.cols, whole + r * width);
      kernel.block(block, strip, whole, width, steps, add);
      for (i64 r = 0; r < part.rows; ++r) std::copy_n(whole + r * width, part.cols, part.data + r * part.stride);
    }
  }
};

}  // namespace orrery::kernels
