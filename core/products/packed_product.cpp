// Chapter 8. Packed products: blocks of A, strips of B, and the copies of both.
#include "core/products/packed_product.h"

#include <algorithm>
#include <type_traits>

#include "core/kernels/scratch.h"
#include "core/products/small_product.h"
#include "core/products/unpacked_product.h"

namespace orrery::kernels {
namespace {

// How much of A and B is packed at a time: the block of A takes up to 384 KB, the strip of B 16 KB (64 KB with
// AVX-512). The block consists of panels, the strip of one: they have the rows and columns of a block of C.
constexpr i64 depth_at_once = 256;
template <class T>
constexpr i64 rows_at_once = 384 * sizeof(float) / sizeof(T);
template <class T>
constexpr i64 strip_width = block_vectors* vector_bytes / sizeof(T);

// Copies rows [0, rows) and columns [0, depth) of `from` as columns of `to`, which are `width` apart.
template <class T, i64 width>
void pack(const Strided<T>& from, i64 rows, i64 depth, T* to) {
  const auto copy = [&](auto count) {  // a number that the compiler knows, if all rows are there
    for (i64 p = 0; p < depth; ++p)
      for (i64 i = 0; i < count; ++i) to[p * width + i] = from.data[i * from.row + p * from.column];
  };
  const std::integral_constant<i64, width> all;
  if (rows < width) return copy(rows);
  if (from.row == 1) {
    for (i64 p = 0; p < depth; ++p) std::copy_n(from.data + p * from.column, all, to + p * width);
  } else {
    copy(all);
  }
}

// The part of x that begins at (i, p).
template <class T>
Strided<T> part_from(const Strided<T>& x, i64 i, i64 p) {
  return {x.data + i * x.row + p * x.column, x.row, x.column};
}

// op(A), and the transpose of op(B).
template <class T>
Strided<T> left_factor(const Mat<const T>& a, Trans trans) {
  return transposes_a(trans) ? Strided<T>{a.data, 1, a.stride} : Strided<T>{a.data, a.stride, 1};
}
template <class T>
Strided<T> right_factor(const Mat<const T>& b, Trans trans) {
  return transposes_b(trans) ? Strided<T>{b.data, b.stride, 1} : Strided<T>{b.data, 1, b.stride};
}

// A packed block of A with as many rows as c, times a packed strip of B. The numbers of c that are needed next are
// fetched meanwhile.
template <class T>
void block_product(const T* block, const Mat<const T>& strip, const Mat<T>& c, bool add) {
  constexpr i64 line = 64 / sizeof(T);
  for (i64 i = 0; i < c.rows; i += block_rows) {
    const i64 end = std::min(c.rows, i + block_rows);
    for (i64 next = end; next < std::min(c.rows, end + block_rows); ++next)
      for (i64 j = 0; j < c.cols; j += line) __builtin_prefetch(c.data + next * c.stride + j);
    small_product<T>({block + i * depth_at_once, 1, block_rows}, strip, part_of(c, {i, end, 0, c.cols}), add);
  }
}

// The elements of a strip, and of the block of a C with this many rows.
template <class T>
constexpr i64 strip_size = depth_at_once* strip_width<T>;
template <class T>
i64 block_size(i64 rows) {
  return (std::min(rows, rows_at_once<T>) + block_rows - 1) / block_rows * block_rows * depth_at_once;
}

// One tile of C, whose rows are those of a and whose columns are the rows of b_t, by one thread. `scratch` has room for
// a strip and a block.
template <class T>
void tile_product(const Strided<T>& a, const Strided<T>& b_t, const Mat<T>& c, i64 k, bool add, T* scratch) {
  constexpr i64 width = strip_width<T>, most_rows = rows_at_once<T>;
  T *strip = scratch, *block = strip + strip_size<T>;
  for (i64 p = 0; p == 0 || p < k; p += depth_at_once) {
    const i64 depth = std::min(depth_at_once, k - p);
    for (i64 i = 0; i < c.rows; i += most_rows) {
      const i64 rows_end = std::min(c.rows, i + most_rows);
      for (i64 r = i; r < rows_end; r += block_rows)
        pack<T, block_rows>(part_from(a, r, p), std::min<i64>(block_rows, rows_end - r), depth,
                            block + (r - i) * depth_at_once);
      for (i64 j = 0; j < c.cols; j += width) {
        const i64 columns_end = std::min(c.cols, j + width);
        pack<T, width>(part_from(b_t, j, p), columns_end - j, depth, strip);
        block_product<T>(block, {strip, depth, columns_end - j, width}, part_of(c, {i, rows_end, j, columns_end}),
                         add || p > 0);
      }
    }
  }
}

template <class T>
i64 inner_size(const Mat<const T>& a, Trans trans) {
  return transposes_a(trans) ? a.rows : a.cols;
}

}  // namespace

i64 packed_tiles(i64 m, i64 n) { return cut_of(m, n, Trans::none).tiles(); }

template <class T>
void packed_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                    const TileWork& finish) {
  const Strided<T> left = left_factor(a, trans), right = right_factor(b, trans);
  const i64 k = inner_size(a, trans);
  const Cut cut = cut_of(c.rows, c.cols, Trans::none);
  tasks_with_scratch<T>(cut.tiles(), strip_size<T> + block_size<T>(c.rows), [&](i64 i, T* scratch) {
    const Tile tile = cut.tile(i, c.rows, c.cols);
    if (fill) fill(tile);
    tile_product<T>(part_from(left, tile.row, 0), part_from(right, tile.column, 0), part_of(c, tile), k,
                    accumulate || fill, scratch);
    if (finish) finish(tile);
  });
}

template <class T>
void packed_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c, Trans trans,
                  bool accumulate) {
  const i64 k = inner_size(a.first, trans);
  tasks_with_scratch<T>(count, strip_size<T> + block_size<T>(c.first.rows), [&](i64 i, T* scratch) {
    tile_product<T>(left_factor(a[i], trans), right_factor(b[i], trans), c[i], k, accumulate, scratch);
  });
}

template void packed_product(Mat<const float>, Mat<const float>, Mat<float>, Trans, bool, const TileWork&,
                             const TileWork&);
template void packed_product(Mat<const double>, Mat<const double>, Mat<double>, Trans, bool, const TileWork&,
                             const TileWork&);
template void packed_batch(i64, const MatBatch<const float>&, const MatBatch<const float>&, const MatBatch<float>&,
                           Trans, bool);
template void packed_batch(i64, const MatBatch<const double>&, const MatBatch<const double>&, const MatBatch<double>&,
                           Trans, bool);

}  // namespace orrery::kernels
