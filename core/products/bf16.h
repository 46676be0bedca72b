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
/// `Bits` holds the bits of a float, or of each in a vector.
template <class Bits, class Float> static inline Float rounded_to_bf16(Float x) {
  constexpr u32 half = 0x7fff, upper = 0xffff0000, sign = 0x80000000, infinity = 0x7f800000, quiet = 0x00400000;
  const Bits bits = std::bit_cast<Bits>(x), nearest = bits + half + (bits >> 16 & 1);
  return std::bit_cast<Float>(((bits & ~sign) > infinity ? bits | quiet : nearest) & upper);
}
static inline float rounded_to_bf16(float x) { return rounded_to_bf16<u32>(x); }

/// A part of a matrix, rounded: a copy in `memory`, whose rows follow one another.
static inline Mat<const float> rounded_part(const Mat<const float>& x, const Tile& part, float* memory) {
  const i64 rows = part.row_end - part.row, cols = part.column_end - part.column;
  for (i64 i = 0; i < rows; ++i) {
    const float* from = x.data + (part.row + i) * x.stride + part.column;
    for (i64 j = 0; j < cols; ++j) memory[i * cols + j] = rounded_to_bf16(from[j]);
  }
  return {memory, rows, cols};
}

/// c += op(a) b of rounded factors, where no kernel multiplies them; without memory of its own, so that tasks may use
/// it. Calls add(a', b', c'), which does this for exact factors, for rounded copies of parts. For each part of c these
/// come in the order of the inner index.
template <class Add>
static void add_rounded(const Mat<const float>& a, const Mat<const float>& b, const Mat<float>& c, Trans trans,
                        const Add& add) {
  constexpr i64 rows = 48, columns = 96, depth = 128;  // multiples of the blocks of small_product.h
  alignas(64) float left[rows * depth], right[columns * depth];
  const i64 k = inner_size(a, trans);
  for (i64 p = 0; p < k; p += depth)
    for (i64 j = 0; j < c.cols; j += columns) {
      const i64 p_end = std::min(k, p + depth), j_end = std::min(c.cols, j + columns);
      const Mat<const float> b_part = rounded_part(b, {p, p_end, j, j_end}, right);
      for (i64 i = 0; i < c.rows; i += rows) {
        const i64 i_end = std::min(c.rows, i + rows);
        const Tile a_part = trans == Trans::a ? Tile{p, p_end, i, i_end} : Tile{i, i_end, p, p_end};
        add(rounded_part(a, a_part, left), b_part, part_of(c, {i, i_end, j, j_end}));
      }
    }
}

}  // namespace orrery::kernels
