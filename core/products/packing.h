// Chapter 8. Packing: rows of a factor, copied as columns; what packed products and their forms hand each other.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/machine/vector.h"
#include "core/products/small_product.h"

namespace orrery::kernels {

/// Exchanges every second part of a, of `step` lanes, with one of b.
template <size_t step, class V, size_t... l> static void exchange(V& a, V& b, std::index_sequence<l...>) {
  constexpr size_t lanes = sizeof...(l);
  const V upper = __builtin_shufflevector(a, b, ((l & step) == 0 ? l : lanes + l - step)...);
  b = __builtin_shufflevector(a, b, ((l & step) == 0 ? l + step : lanes + l)...);
  a = upper;
}
/// The square matrix of the vectors v[0], v[1], ... is transposed: quarters are exchanged, then theirs, and so on.
template <size_t lanes, size_t step = lanes / 2, class V> static void transpose_vectors(V* v) {
  for (size_t i = 0; i < lanes; ++i)
    if ((i & step) == 0) exchange<step>(v[i], v[i + step], std::make_index_sequence<lanes>());
  if constexpr (step > 1) transpose_vectors<lanes, step / 2>(v);
}

/// The part of x that begins at (i, p).
template <class T> static Strided<T> part_from(const Strided<T>& x, i64 i, i64 p) {
  return {x.data + i * x.row + p * x.column, x.row, x.column};
}

/// op(A), and the transpose of op(B).
template <class T> static Strided<T> left_factor(const Mat<const T>& a, Trans trans) {
  return transposes_a(trans) ? Strided<T>{a.data, 1, a.stride} : Strided<T>{a.data, a.stride, 1};
}
template <class T> static Strided<T> right_factor(const Mat<const T>& b, Trans trans) {
  return transposes_b(trans) ? Strided<T>{b.data, b.stride, 1} : Strided<T>{b.data, 1, b.stride};
}

/// `count` rows of a factor.
template <class T> struct Rows {
  Strided<T> from;
  i64 count;
};

/// Part of a matrix C, and the work that `gemm` is to do there (core/products/gemm.h): `begin` before the first of the
/// products that are added up, `end` after the last. Both take a tile of the part.
struct PartWork {
  TileWork fill{}, finish{};
  i64 row = 0, column = 0;  ///< where the part begins
  bool first = true, last = true;

  PartWork at(i64 i, i64 j, bool is_first, bool is_last) const {
    return {fill, finish, row + i, column + j, is_first, is_last};
  }
  void begin(const Tile& tile) const {
    if (first && fill) fill(moved(tile));
  }
  void end(const Tile& tile) const {
    if (last && finish) finish(moved(tile));
  }

 private:
  Tile moved(const Tile& t) const { return {t.row + row, t.row_end + row, t.column + column, t.column_end + column}; }
};

// `pack` and `pack_panels` prefetch what is read next, since the CPU does not foresee what lies in many rows. A
// prefetch never fails, so it may go beyond the matrix.

/// Rows [0, rows) of `from`, at most `width` of them, and columns [0, depth) become columns of `to`, which are `width`
/// apart and padded with zeros. A few numbers beyond them may be overwritten.
template <class T, i64 width> static void pack(const Strided<T>& from, i64 rows, i64 depth, T* to) {
  constexpr i64 lanes = std::min<i64>(vector_bytes, 32) / sizeof(T), line = 64 / sizeof(T),
                at_once = width % lanes == 0 ? 1 : width / lanes + 1;
  using Vector = typename VectorOf<T, lanes>::type;
  const auto square = [&](i64 i, i64 p) {  // at_once of them: `lanes` columns of rows i, i + 1, ...
    Vector v[at_once][lanes];
    for (i64 x = 0; x < at_once; ++x) {
      for (i64 r = 0; r < lanes; ++r) {
        const i64 row = i + x * lanes + r;
        v[x][r] = row < std::min(width, rows) ? load<Vector>(from.data + row * from.row + p) : Vector{};
      }
      transpose_vectors<lanes>(v[x]);
    }
    for (i64 r = 0; r < lanes; ++r)  // what goes beyond `width` is overwritten by the next column
      for (i64 x = 0; x < at_once; ++x) store(v[x][r], to + (p + r) * width + i + x * lanes);
  };
  i64 p = 0;
  // A cache line of each row is read whole, since many rows may compete for one place in the nearest cache.
  for (; from.column == 1 && width % lanes == 0 && p + line <= depth; p += line)
    for (i64 i = 0; i < width; i += lanes) {
      for (i64 r = 0; r < lanes; ++r) __builtin_prefetch(from.data + (i + r + width) * from.row + p);
      for (i64 part = 0; part < line; part += lanes) square(i, p + part);
    }
  for (; from.column == 1 && p + lanes <= depth; p += lanes) {
    if (p % line == 0)
      for (i64 i = 0; i < width; ++i) __builtin_prefetch(from.data + (i + width) * from.row + p);
    for (i64 i = 0; i < width; i += at_once * lanes) square(i, p);
  }
  for (; p < depth; ++p)
    for (i64 i = 0; i < width; ++i) to[p * width + i] = i < rows ? from.data[i * from.row + p * from.column] : T{0};
}

/// Packs `rows` rows into panels of `width`, which follow one another. Where rows are not contiguous, several panels
/// are filled at once, so that a cache line is read once.
template <class T, i64 width> static void pack_panels(const Strided<T>& from, i64 rows, i64 depth, T* to) {
  constexpr i64 at_once = 8, ahead = 8, line = 64 / sizeof(T);
  i64 i = 0;
  while (from.row == 1 && i + width <= rows) {
    const i64 panels = std::min(at_once, (rows - i) / width);
    for (i64 p = 0; p < depth; ++p) {
      const T* source = from.data + p * from.column + i;
      T* target = to + i * depth + p * width;
      for (i64 x = 0; x < panels * width; x += line) __builtin_prefetch(source + ahead * from.column + x);
      for (i64 x = 0; x < panels; ++x)
        std::memcpy(target + x * width * depth, source + x * width, width * sizeof(T));  // in registers
    }
    i += panels * width;
  }
  for (; i < rows; i += width) pack<T, width>(part_from(from, i, 0), std::min(width, rows - i), depth, to + i * depth);
}

}  // namespace orrery::kernels
