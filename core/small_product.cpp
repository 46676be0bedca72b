// Chapter 8. Products of small matrices: blocks of C in registers.
//
// Read next: core/scores.h
#include "core/small_product.h"

#include <cstring>

namespace orrery {
namespace {

// A block of 6 rows by 4 vectors needs 24 registers for C, 4 for B and 1 for A: with AVX-512 there are 32 of 64 bytes,
// elsewhere 16 or 32 of at most 32 bytes, where 6 x 2 fits.
#if defined(__AVX512F__)
constexpr size_t vector_bytes = 64;
constexpr int widest = 4;
#else
constexpr size_t vector_bytes = 32;
constexpr int widest = 2;
#endif

// `lanes` numbers that arithmetic treats as one.
template <class T, size_t lanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};

template <class T>
struct Operands {
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

template <class T, size_t lanes, int rows, int vectors>
void block(const Operands<T>& o) {
  using Vector = typename VectorOf<T, lanes>::type;
  const auto address = [&](int r, int v) { return o.c + r * o.c_stride + v * static_cast<i64>(lanes); };
  Vector sum[rows][vectors] = {};
  if (o.accumulate) {
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) std::memcpy(&sum[r][v], address(r, v), sizeof(Vector));
  }
  for (i64 p = 0; p < o.k; ++p) {
    Vector right[vectors];
    for (int v = 0; v < vectors; ++v)
      std::memcpy(&right[v], o.b + p * o.b_stride + v * static_cast<i64>(lanes), sizeof(Vector));
    for (int r = 0; r < rows; ++r) {
      const T left = o.a.data[r * o.a.row + p * o.a.column];
      for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) std::memcpy(address(r, v), &sum[r][v], sizeof(Vector));
}

// All m rows of a strip of columns that is `vectors` wide.
template <class T, size_t lanes, int vectors>
void strip(i64 m, const Operands<T>& o) {
  i64 i = 0;
  if constexpr (vectors == 1) {  // multiply-adds take four cycles: narrow blocks need more rows to keep them all busy
    for (; i + 12 <= m; i += 12) block<T, lanes, 12, vectors>(o.at(i, 0));
  }
  for (; i + 6 <= m; i += 6) block<T, lanes, 6, vectors>(o.at(i, 0));
  if (i + 4 <= m) block<T, lanes, 4, vectors>(o.at(i, 0)), i += 4;
  if (i + 2 <= m) block<T, lanes, 2, vectors>(o.at(i, 0)), i += 2;
  if (i < m) block<T, lanes, 1, vectors>(o.at(i, 0));
}

}  // namespace

template <class T>
void small_product(i64 m, i64 n, i64 k, Strided<T> a, const T* b, i64 b_stride, T* c, i64 c_stride, bool accumulate) {
  constexpr size_t lanes = vector_bytes / sizeof(T);
  constexpr i64 width = static_cast<i64>(lanes);
  const Operands<T> o{k, a, b, b_stride, c, c_stride, accumulate};
  i64 j = 0;
  for (; j + widest * width <= n; j += widest * width) strip<T, lanes, widest>(m, o.at(0, j));
  if constexpr (widest == 4) {
    if (j + 2 * width <= n) strip<T, lanes, 2>(m, o.at(0, j)), j += 2 * width;
  }
  for (; j + width <= n; j += width) strip<T, lanes, 1>(m, o.at(0, j));
  if constexpr (lanes > 8) {
    for (; j + 8 <= n; j += 8) strip<T, 8, 1>(m, o.at(0, j));
  }
  for (; j + 4 <= n; j += 4) strip<T, 4, 1>(m, o.at(0, j));
  for (; j < n; ++j) strip<T, 1, 1>(m, o.at(0, j));
}

template void small_product(i64, i64, i64, Strided<float>, const float*, i64, float*, i64, bool);
template void small_product(i64, i64, i64, Strided<double>, const double*, i64, double*, i64, bool);

}  // namespace orrery
