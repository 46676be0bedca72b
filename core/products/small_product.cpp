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
};

// The columns of C in a strip of `lanes` * `vectors` columns: all of them or, if `vectors` is 1, the first `columns`.
struct AllColumns {};
struct FirstColumns {
  i64 columns;
};

template <class T, size_t lanes, int rows, int vectors, class Columns>
void block(const Operands<T>& o, [[maybe_unused]] Columns part) {
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
  for (i64 p = 0; p < o.k; ++p) {
    Vector right[vectors];
    for (int v = 0; v < vectors; ++v) right[v] = load<Vector>(o.b + p * o.b_stride + v * static_cast<i64>(lanes));
    for (int r = 0; r < rows; ++r) {
      const T left = o.a.data[r * o.a.row + p * o.a.column];
      for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
    }
  }
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

}  // namespace

template <class T> void small_product(Strided<T> a, Mat<const T> b, Mat<T> c, bool accumulate) {
  constexpr size_t lanes = vector_bytes / sizeof(T);
  constexpr i64 width = static_cast<i64>(lanes);
  const i64 m = c.rows, n = c.cols;
  const Operands<T> o{b.rows, a, b.data, b.stride, c.data, c.stride, accumulate};
  const bool copies = m >= rows_worth_a_copy && b.stride > block_vectors * width;
  i64 j = 0;
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

template void small_product(Strided<float>, Mat<const float>, Mat<float>, bool);
template void small_product(Strided<double>, Mat<const double>, Mat<double>, bool);

}  // namespace orrery::kernels
