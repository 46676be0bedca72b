// Chapter 8. Products of small matrices: blocks of C in registers.
#include "core/products/small_product.h"

#include <algorithm>
#include <cstring>

namespace orrery::kernels {
namespace {

template <class T> struct Operands {
  i64 k;
  Strided<T> a;
  const T* b;
  i64 b_stride;
  T* c;
  i64 c_stride;
  bool accumulate;

  // The same product for the part of C that begins at (i, j).
  Operands at(i64 i, i64 j) const {
    return {k, {a.data + i * a.row, a.row, a.column}, b + j, b_stride, c + i * c_stride + j, c_stride, accumulate};
  }
  // What the blocks after this one need: the next rows of A; of A^T, the next numbers of each row.
  Strided<T> next() const {
    if (a.column == 1) return {a.data + block_rows * a.row, a.row, 1};
    return {a.data + 64 / sizeof(T), a.column, a.column};
  }
};

// The same where both factors are packed: with strides that the compiler knows.
template <class T> struct PackedRows {
  const T* data;
  static constexpr i64 row = 1, column = block_rows;
};
template <class T> struct PackedOperands {
  i64 k;
  PackedRows<T> a;
  const T* b;
  T* c;
  i64 c_stride;
  bool accumulate;
  Strided<T> ahead;
  static constexpr i64 b_stride = strip_width<T>;
  Strided<T> next() const { return ahead; }
};

// The columns of C in a strip of `lanes` * `vectors` columns: all of them or, if `vectors` is 1, the first `columns`.
struct AllColumns {};
struct FirstColumns {
  i64 columns;
};

template <class T, size_t lanes, int rows, int vectors, class Factors, class Columns = AllColumns>
void block(const Factors& o, [[maybe_unused]] Columns part = {}) {
  using Vector = typename VectorOf<T, lanes>::type;
  const auto address = [&](int r, int v) { return o.c + r * o.c_stride + v * static_cast<i64>(lanes); };
  constexpr bool whole = std::is_same_v<Columns, AllColumns>;
  Vector sum[rows][vectors];
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) sum[r][v] = Vector{};  // `= {}` for all would be a call of memset
  if (o.accumulate) {
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) {
        if constexpr (whole)
          sum[r][v] = load<Vector>(address(r, v));
        else
          std::memcpy(&sum[r][v], address(r, v), static_cast<size_t>(part.columns) * sizeof(T));
      }
  }
  const auto add_products = [&](i64 p) {
    Vector right[vectors];
    for (int v = 0; v < vectors; ++v) right[v] = load<Vector>(o.b + p * o.b_stride + v * static_cast<i64>(lanes));
    for (int r = 0; r < rows; ++r) {
      const T left = o.a.data[r * o.a.row + p * o.a.column];
      for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
    }
  };
  i64 p = 0;
  if constexpr (rows == block_rows && vectors == block_vectors) {
    // What is needed next comes meanwhile: one cache line in each step, and a row of C in every eighth. Many at once
    // would keep the block's own loads waiting (apps/measure/bench/README.md).
    constexpr i64 line = 64 / sizeof(T), columns = vectors * static_cast<i64>(lanes), steps = 8;
    const Strided<T> next = o.next();
    for (; p + steps <= o.k; p += steps) {
      for (i64 j = 0; j < columns && p / steps < rows; j += line)
        __builtin_prefetch(o.c + (rows + p / steps) * o.c_stride + j, 1);
      for (i64 i = 0; i < steps; ++i) {
        __builtin_prefetch(next.data + i * next.row + p * next.column);
        add_products(p + i);
      }
    }
  }
  for (; p < o.k; ++p) add_products(p);
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      if constexpr (whole)
        store(sum[r][v], address(r, v));
      else
        std::memcpy(address(r, v), &sum[r][v], static_cast<size_t>(part.columns) * sizeof(T));
    }
}

// All m rows of a strip that is `vectors` vectors wide.
template <class T, size_t lanes, int vectors, class Columns = AllColumns>
void strip(i64 m, const Operands<T>& o, Columns part = {}) {
  i64 i = 0;
  if constexpr (vectors == 1) {  // a multiply-add takes four cycles: narrow blocks need more rows to overlap them
    for (; i + 12 <= m; i += 12) block<T, lanes, 12, vectors>(o.at(i, 0), part);
  }
  for (; i + block_rows <= m; i += block_rows) block<T, lanes, block_rows, vectors>(o.at(i, 0), part);
  if (i + 4 <= m) {
    block<T, lanes, 4, vectors>(o.at(i, 0), part);
    i += 4;
  }
  if (i + 2 <= m) {
    block<T, lanes, 2, vectors>(o.at(i, 0), part);
    i += 2;
  }
  if (i < m) block<T, lanes, 1, vectors>(o.at(i, 0), part);
}

// The same, but the strip of B is copied first: its rows then follow one another, and are padded with zeros.
template <class T, size_t lanes, int vectors, class Columns = AllColumns>
void copied_strip(i64 m, const Operands<T>& o, Columns part = {}) {
  constexpr i64 width = static_cast<i64>(lanes) * vectors, most_rows = 256;
  alignas(64) T copy[most_rows * width];
  for (i64 p = 0; p == 0 || p < o.k; p += most_rows) {
    const i64 rows = std::min(most_rows, o.k - p);
    for (i64 r = 0; r < rows; ++r) {
      const T* from = o.b + (p + r) * o.b_stride;
      if constexpr (std::is_same_v<Columns, AllColumns>) {
        std::memcpy(copy + r * width, from, width * sizeof(T));
      } else {
        std::fill(std::copy_n(from, part.columns, copy + r * width), copy + (r + 1) * width, T{0});
      }
    }
    const Strided<T> a{o.a.data + p * o.a.column, o.a.row, o.a.column};
    strip<T, lanes, vectors>(m, {rows, a, copy, width, o.c, o.c_stride, o.accumulate || p > 0}, part);
  }
}

// Rows of B that are far apart compete for a few places in the nearest cache, and each needs an entry in the TLB, the
// cache for addresses. Copying them first pays (apps/measure/bench/README.md), but not for few rows of A.
constexpr i64 rows_worth_a_copy = 64;

// With few rows, a block has more vectors, so that enough sums are on their way, and reads B in longer pieces.
template <class T, int rows, int vectors> i64 wide_blocks(const Operands<T>& o, i64 columns) {
  constexpr i64 lanes = vector_bytes / sizeof(T), width = vectors * lanes;
  i64 j = 0;
  for (; j + width <= columns; j += width) block<T, lanes, rows, vectors>(o.at(0, j));
  return j;
}

}  // namespace

template <class T> void small_product(Strided<T> a, Mat<const T> b, Mat<T> c, bool accumulate) {
  constexpr size_t lanes = vector_bytes / sizeof(T);
  constexpr i64 width = static_cast<i64>(lanes);
  const i64 m = c.rows, n = c.cols;
  const Operands<T> o{b.rows, a, b.data, b.stride, c.data, c.stride, accumulate};
  const bool copies = m >= rows_worth_a_copy && b.stride > block_vectors * width;
  i64 j = m == 1 ? wide_blocks<T, 1, 8>(o, n) : m == 2 ? wide_blocks<T, 2, 4>(o, n) : 0;
  for (; j + block_vectors * width <= n; j += block_vectors * width) {
    if (copies) {
      copied_strip<T, lanes, block_vectors>(m, o.at(0, j));
    } else {
      strip<T, lanes, block_vectors>(m, o.at(0, j));
    }
  }
  if constexpr (block_vectors == 4) {
    if (j + 2 * width <= n) {
      strip<T, lanes, 2>(m, o.at(0, j));
      j += 2 * width;
    }
  }
  for (; j + width <= n; j += width) strip<T, lanes, 1>(m, o.at(0, j));
  if constexpr (lanes > 8) {
    for (; j + 8 <= n; j += 8) strip<T, 8, 1>(m, o.at(0, j));
  }
  for (; j + 4 <= n; j += 4) strip<T, 4, 1>(m, o.at(0, j));
  // One to three columns are computed as four. With single numbers the compiler would first multiply several of them
  // and then add, which rounds differently.
  if (j < n) copied_strip<T, 4, 1>(m, o.at(0, j), FirstColumns{n - j});
}

namespace {

// `inner` rows of B, times `rows` rows of A. For the first ones, the rows of B that follow are prefetched.
template <class T, int rows, int inner> void add_rows(const Operands<T>& o, i64 columns, bool first) {
  using Vector = typename VectorOf<T>::type;
  constexpr i64 lanes = VectorOf<T>::lanes, line = 64 / sizeof(T);
  T left[rows][inner];
  for (int r = 0; r < rows; ++r)
    for (int p = 0; p < inner; ++p) left[r][p] = o.a.data[r * o.a.row + p * o.a.column];
  for (i64 j = 0; j < columns; j += lanes) {
    Vector sum[rows];
    for (int r = 0; r < rows; ++r) sum[r] = o.accumulate ? load<Vector>(o.c + r * o.c_stride + j) : Vector{};
    for (int p = 0; p < inner; ++p) {
      if (first && j % line == 0) __builtin_prefetch(o.b + (p + inner) * o.b_stride + j);
      const Vector right = load<Vector>(o.b + p * o.b_stride + j);
      for (int r = 0; r < rows; ++r) sum[r] += left[r][p] * right;
    }
    for (int r = 0; r < rows; ++r) store(sum[r], o.c + r * o.c_stride + j);
  }
}

// All rows of A, two at a time, while those of B are in the nearest cache.
template <class T, int inner> void add_rows(i64 m, Operands<T> o, i64 columns, i64 p) {
  o.a.data += p * o.a.column;
  o.b += p * o.b_stride;
  o.accumulate = o.accumulate || p > 0;
  i64 i = 0;
  for (; i + 2 <= m; i += 2) add_rows<T, 2, inner>(o.at(i, 0), columns, i == 0);
  if (i < m) add_rows<T, 1, inner>(o.at(i, 0), columns, i == 0);
}

}  // namespace

template <class T> void few_rows_product(Strided<T> a, Mat<const T> b, Mat<T> c, bool accumulate) {
  constexpr i64 lanes = vector_bytes / sizeof(T), inner = 4, size = 16384 / sizeof(T);
  alignas(64) T copy[size];  // of columns of C: rows that are far apart would compete for the same places in the cache
  const i64 m = c.rows, whole = c.cols / lanes * lanes, width = size / std::max<i64>(1, m) / lanes * lanes;
  for (i64 j = 0; j < whole && b.rows > 0; j += width) {
    const i64 columns = std::min(width, whole - j);
    for (i64 i = 0; i < m && accumulate; ++i) std::copy_n(c.data + i * c.stride + j, columns, copy + i * columns);
    const Operands<T> o{b.rows, a, b.data + j, b.stride, copy, columns, accumulate};
    i64 p = 0;
    for (; p + inner <= b.rows; p += inner) add_rows<T, inner>(m, o, columns, p);
    for (; p < b.rows; ++p) add_rows<T, 1>(m, o, columns, p);
    for (i64 i = 0; i < m; ++i) std::copy_n(copy + i * columns, columns, c.data + i * c.stride + j);
  }
  const i64 rest = b.rows > 0 ? whole : 0;
  if (rest < c.cols)
    small_product<T>(a, {b.data + rest, b.rows, c.cols - rest, b.stride}, part_of(c, {0, m, rest, c.cols}), accumulate);
}

template void few_rows_product(Strided<float>, Mat<const float>, Mat<float>, bool);
template void few_rows_product(Strided<double>, Mat<const double>, Mat<double>, bool);

template <class T>
void packed_rows_product(const T* rows, const T* strip, i64 depth, Mat<T> c, bool accumulate, Strided<T> next) {
  constexpr size_t lanes = vector_bytes / sizeof(T);
  if (c.rows == block_rows && c.cols == strip_width<T>)
    return block<T, lanes, block_rows, block_vectors>(
        PackedOperands<T>{depth, {rows}, strip, c.data, c.stride, accumulate, next});
  small_product<T>({rows, 1, block_rows}, {strip, depth, c.cols, strip_width<T>}, c, accumulate);
}

template void packed_rows_product(const float*, const float*, i64, Mat<float>, bool, Strided<float>);
template void packed_rows_product(const double*, const double*, i64, Mat<double>, bool, Strided<double>);
template void small_product(Strided<float>, Mat<const float>, Mat<float>, bool);
template void small_product(Strided<double>, Mat<const double>, Mat<double>, bool);

}  // namespace orrery::kernels
