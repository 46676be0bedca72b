// Chapter 8. Packing: rows of a factor, copied as columns; what packed products and their forms hand each other.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
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

/// Vector `part` of x0, y0, z0, x1, y1, z1, ..., where x0 stands for lanes 0 and 1 of x, x1 for lanes 2 and 3.
template <size_t part, class V, size_t... l>
static V pairs_in_turn(const V& x, const V& y, const V& z, std::index_sequence<l...>) {
  constexpr size_t lanes = sizeof...(l);
  constexpr auto whose = [](size_t lane) { return (part * lanes + lane) / 2 % 3; };
  constexpr auto from = [](size_t lane) { return (part * lanes + lane) / 6 * 2 + lane % 2; };
  const V of_two = __builtin_shufflevector(x, y, (whose(l) == 1 ? lanes + from(l) : from(l))...);
  return __builtin_shufflevector(of_two, z, (whose(l) == 2 ? lanes + from(l) : l)...);
}
/// Stores the vectors v[0] to v[5] lane by lane: first two of them in turn, then three pairs.
template <class V, class T, size_t... l>
static void store_six_in_turn(const V* v, T* to, std::index_sequence<l...> all) {
  constexpr size_t lanes = sizeof...(l);
  const auto store_half = [&]<size_t first>(T* half, std::integral_constant<size_t, first>) {  // lanes from `first` on
    const auto two = [&](int i) { return __builtin_shufflevector(v[i], v[i + 1], (l % 2 * lanes + first + l / 2)...); };
    const V x = two(0), y = two(2), z = two(4);
    store(pairs_in_turn<0>(x, y, z, all), half);
    store(pairs_in_turn<1>(x, y, z, all), half + lanes);
    store(pairs_in_turn<2>(x, y, z, all), half + 2 * lanes);
  };
  store_half(to, std::integral_constant<size_t, 0>());
  store_half(to + 3 * lanes, std::integral_constant<size_t, lanes / 2>());
}

// `pack` and `pack_panels` prefetch what is read next, since the CPU does not foresee what lies in many rows. A
// prefetch never fails, so it may go beyond the matrix.

/// Rows [0, rows) of `from`, at most `width` of them, and columns [0, depth) become columns of `to`, which are `width`
/// apart and padded with zeros.
template <class T, i64 width> static void pack(const Strided<T>& from, i64 rows, i64 depth, T* to) {
  constexpr i64 line = 64 / sizeof(T), page = 4096 / sizeof(T);
  const auto row = [&]<class Vector>(i64 r, i64 p, Vector) {
    return r < rows ? load<Vector>(from.data + r * from.row + p) : Vector{};
  };
  i64 p = 0;
  if constexpr (width == 6) {
    using Vector = typename VectorOf<T>::type;
    constexpr i64 lanes = VectorOf<T>::lanes;
    for (; from.column == 1 && p + lanes <= depth; p += lanes) {
      Vector v[width];
      for (i64 r = 0; r < width; ++r) {
        __builtin_prefetch(from.data + (r + width) * from.row + p);
        v[r] = row(r, p, Vector{});
      }
      store_six_in_turn(v, to + p * width, std::make_index_sequence<lanes>());
    }
  } else {
    // A cache line of each row is read whole, since many rows may compete for one place in the nearest cache. The next
    // rows are not prefetched where each lies in a page of its own: the CPU keeps the addresses of about 96.
    constexpr i64 lanes = std::min<i64>(vector_bytes, 32) / sizeof(T);
    static_assert(width % lanes == 0 && line % lanes == 0);
    using Vector = typename VectorOf<T, lanes>::type;
    while (from.column == 1 && p + lanes <= depth) {
      const i64 begin = p;
      p = std::min(p + line, depth / lanes * lanes);
      for (i64 i = 0; i < width; i += lanes) {
        for (i64 r = i; r < i + lanes && from.row < page; ++r)
          __builtin_prefetch(from.data + (r + width) * from.row + begin);
        for (i64 part = begin; part < p; part += lanes) {
          Vector v[lanes];
          for (i64 r = 0; r < lanes; ++r) v[r] = row(i + r, part, Vector{});
          transpose_vectors<lanes>(v);
          for (i64 r = 0; r < lanes; ++r) store(v[r], to + (part + r) * width + i);
        }
      }
    }
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
