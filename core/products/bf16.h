// Chapter 8. Products whose factors are rounded to bf16, the upper half of f32: 8 binary digits instead of 24.
//
// Only the factors of a product are rounded, where it packs or copies them: sums and results stay f32. A rounded factor
// that is a normal number is off by at most 2^-8 of itself, so a product by less than 2^-7 of the sum of |a| |b|, and
// usually by much less.
#pragma once

#include <bit>

#include "core/products/gemm.h"
#include "core/products/precision.h"

namespace orrery::kernels {

/// The number of bf16 that is nearest to x; of two, the one whose last digit is 0. NaN stays NaN, infinity infinity.
static inline float rounded_to_bf16(float x) {
  constexpr u32 half = 0x7fff, upper = 0xffff0000, sign = 0x80000000, infinity = 0x7f800000, quiet = 0x00400000;
  const u32 bits = std::bit_cast<u32>(x), nearest = bits + half + (bits >> 16 & 1);
  return std::bit_cast<float>(((bits & ~sign) > infinity ? bits | quiet : nearest) & upper);
}

/// A part of a matrix, rounded: a copy in `memory`, whose rows follow one another.
static inline Mat<const float> rounded_part(const Mat<const float>& x, const Tile& part, float* memory) {
  const i64 rows = part.row_end - part.row, cols = part.column_end - part.column;
  for (i64 i = 0; i < rows; ++i) {
    const float* from = x.data + (part.row + i) * x.stride + part.column;
    for (i64 j = 0; j < cols; ++j) memory[i * cols + j] = rounded_to_bf16(from[j]);
  }
  return {memory, rows, cols};
}

/// c += op(a) op(b) of rounded factors, where no kernel multiplies them; without memory of its own, so that tasks may
/// use it. Calls add(a', b', c'), which does this for exact factors, for rounded copies of parts. For each part of c
/// these come in the order of the inner index.
template <class Add>
static void add_rounded(const Mat<const float>& a, const Mat<const float>& b, const Mat<float>& c, Trans trans,
                        const Add& add) {
  // Multiples of the blocks of the ways that `add` takes. Rows of B^T are read along the inner index.
  const bool along = transposes_b(trans);
  const i64 rows = along ? 12 : 48, columns = along ? 24 : 96, depth = along ? 512 : 128;
  alignas(64) float left[48 * 128], right[96 * 128];
  const auto part_of_factor = [](bool transposed, i64 begin, i64 end, i64 p, i64 p_end) {
    return transposed ? Tile{p, p_end, begin, end} : Tile{begin, end, p, p_end};
  };
  const i64 k = transposes_a(trans) ? a.rows : a.cols;
  for (i64 p = 0; p < k; p += depth)
    for (i64 j = 0; j < c.cols; j += columns) {
      const i64 p_end = std::min(k, p + depth), j_end = std::min(c.cols, j + columns);
      const Mat<const float> b_part = rounded_part(b, part_of_factor(!transposes_b(trans), j, j_end, p, p_end), right);
      for (i64 i = 0; i < c.rows; i += rows) {
        const i64 i_end = std::min(c.rows, i + rows);
        add(rounded_part(a, part_of_factor(transposes_a(trans), i, i_end, p, p_end), left), b_part,
            part_of(c, {i, i_end, j, j_end}));
      }
    }
}

}  // namespace orrery::kernels
