// Chapter 8. Packing for the kernels of pair_kernels.h: bf16, two neighbours along the inner index in 32 bits.
#pragma once

#include <algorithm>
#include <type_traits>

#include "core/products/bf16.h"
#include "core/products/packing.h"
#include "core/products/pair_kernels.h"
#include "core/products/thin_product.h"

namespace orrery::kernels {

/// The form of TileProduct (packed_product.cpp) for a kernel of pairs.
struct Pairs {
  using Packed = u32;
  static constexpr i64 rows = pair_block, width = pair_block, panel = 256, step = pair_block, bytes = 2, packing = 100;
  // A strip in the second cache is as good for tiles as one in the first: what costs is to read and write C for each
  // part of the inner index.
  static constexpr i64 least_depth = 2048;
  static constexpr bool reads_in_place = false;
  static i64 stored(i64 depth) { return (depth + step - 1) / step * pairs_in_step; }

  PairKernel kernel;
  void begin() const { kernel.begin(); }
  void end() const { kernel.end(); }

  void pack_rows(const Strided<float>& from, i64 count, i64 depth, u32* to) const {
    for (i64 first = 0; first < count; first += rows)
      for (i64 p = 0; p < depth; p += step, to += pair_block * pairs_in_step)
        for (i64 i = 0; i < rows; i += pairs_in_step)
          kernel.pack(part_from(from, first + i, p), count - first - i, depth - p, false, to + i * pairs_in_step,
                      pairs_in_step);
  }
  void pack_strips(const Strided<float>& from, i64 count, i64 depth, u32* to) const {
    for (i64 first = 0; first < count; first += width)
      for (i64 p = 0; p < depth; p += step, to += pair_block * pairs_in_step)
        for (i64 j = 0; j < width; j += pairs_in_step)
          kernel.pack(part_from(from, first + j, p), count - first - j, depth - p, true, to + j, pair_block);
  }

  // Each block of A is multiplied with all strips, so that whole rows of c are written. Meanwhile what is needed next
  // is fetched: of c the next block or, where `work` begins with whole rows of blocks, the one below; and of the next
  // panel, which lies in memory while tiles need only the caches.
  void multiply(const u32* block, const u32* strips, const Mat<float>& c, i64 depth, bool add, const PartWork& work,
                const Rows<float>& next) const {
    const i64 steps = stored(depth) / pairs_in_step,
              shares = (c.rows + rows - 1) / rows * ((c.cols + width - 1) / width);
    const bool fills = work.first && work.fill;
    i64 share = 0;
    for (i64 i = 0; i < c.rows; i += rows, block += rows * stored(depth)) {
      const i64 end = std::min(c.rows, i + rows);
      work.begin({i, end, 0, c.cols});
      for (i64 j = 0; j < c.cols; j += width) {
        fetch(next, depth, share++, shares);
        if (!fills || end < c.rows)  // what is below c may be written by another thread
          fetch_to_write(c.data + (fills ? end * c.stride + j : i * c.stride + j + width), c.stride);
        multiply_block(block, strips + j * stored(depth), c, {i, end, j, std::min(c.cols, j + width)}, steps, add);
      }
      work.end({i, end, 0, c.cols});
    }
  }

 private:
  // Blocks at the edges are computed whole, in memory of their own.
  void multiply_block(const u32* block, const u32* strip, const Mat<float>& c, const Tile& tile, i64 steps,
                      bool add) const {
    const Mat<float> part = part_of(c, tile);
    if (part.rows == rows && part.cols == width) return kernel.block(block, strip, part.data, part.stride, steps, add);
    alignas(64) float whole[rows * width] = {};
    for (i64 r = 0; r < part.rows && add; ++r) std::copy_n(part.data + r * part.stride, part.cols, whole + r * width);
    kernel.block(block, strip, whole, width, steps, add);
    for (i64 r = 0; r < part.rows; ++r) std::copy_n(whole + r * width, part.cols, part.data + r * part.stride);
  }

  static void fetch_to_write(const float* c, i64 stride) {
    for (i64 r = 0; r < rows; ++r) {
      __builtin_prefetch(c + r * stride, 1);
      __builtin_prefetch(c + r * stride + width / 2, 1);
    }
  }

  // Fetches share i of `shares` of what is packed next into the second cache.
  static void fetch(const Rows<float>& next, i64 depth, i64 i, i64 shares) {
    constexpr i64 line = 64 / sizeof(float);
    const bool along = next.from.column == 1;
    const i64 lists = along ? next.count : depth, length = along ? depth : next.count,
              apart = along ? next.from.row : next.from.column;
    if (next.count == 0) return;
    for (i64 x = lists * i / shares; x < lists * (i + 1) / shares; ++x)
      for (i64 y = 0; y < length; y += line) __builtin_prefetch(next.from.data + x * apart + y, 0, 2);
  }
};

/// c = op(a) op(b), or c += ... with `accumulate`, by a kernel, on this thread and without memory of its own.
[[maybe_unused]] static void multiply_pairs(const PairKernel& kernel, const Mat<const float>& a,
                                            const Mat<const float>& b, const Mat<float>& c, Trans trans,
                                            bool accumulate) {
  constexpr i64 rows = 64, columns = 128, depth = 256;  // a tile of scores has 128 queries: rows are packed once
  alignas(64) u32 block[rows * depth / 2], strips[columns * depth / 2];
  const Strided<float> left = left_factor(a, trans), right = right_factor(b, trans);
  const Pairs pairs{kernel};
  pairs.begin();
  const i64 k = inner_size(a, trans);
  for (i64 p = 0; p == 0 || p < k; p += depth) {
    const i64 length = std::min(depth, k - p);
    for (i64 j = 0; j < c.cols; j += columns) {
      const i64 j_end = std::min(c.cols, j + columns);
      pairs.pack_strips(part_from(right, j, p), j_end - j, length, strips);
      for (i64 i = 0; i < c.rows; i += rows) {
        const i64 i_end = std::min(c.rows, i + rows);
        pairs.pack_rows(part_from(left, i, p), i_end - i, length, block);
        pairs.multiply(block, strips, part_of(c, {i, i_end, j, j_end}), length, accumulate || p > 0, {}, {right, 0});
      }
    }
  }
  pairs.end();
}

/// The same inside a task: by exact(a, b, c, accumulate) or, of factors in bf16, by the kernel of this CPU if there is
/// enough to compute: a kernel's blocks would be nearly empty otherwise.
template <class T, class Exact>
static void product_in_task([[maybe_unused]] Factors factors, const Mat<const T>& a, const Mat<const T>& b,
                            const Mat<T>& c, [[maybe_unused]] Trans trans, bool accumulate, const Exact& exact) {
  if constexpr (std::is_same_v<T, float>) {
    if (factors == Factors::bf16) {
      const std::optional<PairKernel>& kernel = bf16_kernel().kernel;
      constexpr i64 half = pair_block / 2;
      const bool fills = c.rows > half && c.cols > half &&
                         c.rows * c.cols * inner_size(a, trans) >= pair_block * pair_block * pair_block;
      if (kernel && fills) return multiply_pairs(*kernel, a, b, c, trans, accumulate);
      if (!accumulate) set_to_zero(c);
      if (trans == Trans::b) return add_rounded_thin_product(a, b, c);
      return add_rounded(a, b, c, trans, [&](const auto&... part) { exact(part..., true); });
    }
  }
  exact(a, b, c, accumulate);
}

}  // namespace orrery::kernels
