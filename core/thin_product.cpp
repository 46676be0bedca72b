// Chapter 8. Dot products of a few rows of x with many rows of W.
//
// Read next: core/elementwise.h
#include "core/thin_product.h"

#include <cstring>

#include "core/parallel.h"

namespace orrery {
namespace {

#if defined(__AVX512F__)
constexpr size_t vector_bytes = 64;
#else
constexpr size_t vector_bytes = 32;
#endif

template <class T>
struct VectorOf {
  static constexpr i64 lanes = vector_bytes / sizeof(T);
  typedef T type __attribute__((vector_size(vector_bytes)));
};

// The lanes added up: the upper half to the lower half until one is left.
template <class T>
T combined(const typename VectorOf<T>::type& sum) {
  constexpr i64 lanes = VectorOf<T>::lanes;
  T lane[lanes];
  std::memcpy(lane, &sum, sizeof lane);
  for (i64 half = lanes / 2; half > 0; half /= 2)
    for (i64 i = 0; i < half; ++i) lane[i] += lane[i + half];
  return lane[0];
}

// `rows` rows of x with `columns` rows of W: enough sums that their additions need not wait for each other.
template <class T, int rows, int columns>
void block(const T* x, i64 x_stride, const T* W, i64 W_stride, i64 k, T* c, i64 c_stride) {
  using Vector = typename VectorOf<T>::type;
  constexpr i64 lanes = VectorOf<T>::lanes;
  Vector sum[rows][columns] = {};
  i64 p = 0;
  for (; p + lanes <= k; p += lanes) {
    Vector left[rows];
    for (int r = 0; r < rows; ++r) std::memcpy(&left[r], x + r * x_stride + p, sizeof(Vector));
    for (int j = 0; j < columns; ++j) {
      Vector right;
      std::memcpy(&right, W + j * W_stride + p, sizeof(Vector));
      for (int r = 0; r < rows; ++r) sum[r][j] += left[r] * right;
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < columns; ++j) {
      T total = combined<T>(sum[r][j]);
      for (i64 rest = p; rest < k; ++rest) total += x[r * x_stride + rest] * W[j * W_stride + rest];
      c[r * c_stride + j] += total;
    }
  }
}

template <class T, int rows>
void strip(const T* x, i64 x_stride, const Mat<const T>& W, T* c, i64 c_stride) {
  constexpr int columns = rows == 1 ? 8 : 4;
  i64 j = 0;
  for (; j + columns <= W.rows; j += columns)
    block<T, rows, columns>(x, x_stride, W.data + j * W.stride, W.stride, W.cols, c + j, c_stride);
  for (; j < W.rows; ++j) block<T, rows, 1>(x, x_stride, W.data + j * W.stride, W.stride, W.cols, c + j, c_stride);
}

}  // namespace

template <class T>
void add_thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c) {
  i64 i = 0;
  const auto rows_of = [&]<int rows>() {
    strip<T, rows>(x.data + i * x.stride, x.stride, W, c.data + i * c.stride, c.stride);
    i += rows;
  };
  while (x.rows - i >= 4) rows_of.template operator()<4>();
  if (x.rows - i >= 2) rows_of.template operator()<2>();
  if (x.rows - i >= 1) rows_of.template operator()<1>();
}

namespace {
i64 blocks_of(i64 rows) { return (rows + thin_tile_step - 1) / thin_tile_step; }
}  // namespace

i64 thin_tiles(i64 n, i64 k) {
  const i64 grain = row_grain(thin_tile_step * k);
  return (blocks_of(n) + grain - 1) / grain;
}

template <class T>
void thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c, const TileWork& fill, const TileWork& finish) {
  check(x.cols == W.cols, "thin_product", "inner sizes differ (", x.cols, " != ", W.cols, ")");
  check(c.rows == x.rows && c.cols == W.rows, "thin_product", "the result is ", c.rows, " x ", c.cols, ", needs ",
        x.rows, " x ", W.rows);
  // Tasks are blocks of rows of W, so that tiles begin where they may (thin_product.h); a chunk of them stays in a
  // core's cache while rows of x go by.
  parallel_for(blocks_of(W.rows), row_grain(thin_tile_step * W.cols), [&](i64 first, i64 last) {
    const i64 begin = first * thin_tile_step, end = std::min(W.rows, last * thin_tile_step);
    const Tile tile{0, c.rows, begin, end};
    if (fill) {
      fill(tile);
    } else {
      for (i64 i = 0; i < c.rows; ++i) std::fill_n(c.data + i * c.stride + begin, end - begin, T{0});
    }
    add_thin_product<T>(x, {W.data + begin * W.stride, end - begin, W.cols, W.stride},
                        {c.data + begin, c.rows, end - begin, c.stride});
    if (finish) finish(tile);
  });
}

template void add_thin_product(Mat<const float>, Mat<const float>, Mat<float>);
template void add_thin_product(Mat<const double>, Mat<const double>, Mat<double>);
template void thin_product(Mat<const float>, Mat<const float>, Mat<float>, const TileWork&, const TileWork&);
template void thin_product(Mat<const double>, Mat<const double>, Mat<double>, const TileWork&, const TileWork&);

}  // namespace orrery
