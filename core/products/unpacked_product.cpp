// Chapter 8. Unpacked products: tiles of C, and a B that is transposed first.
#include "core/products/unpacked_product.h"

#include "core/machine/parallel.h"
#include "core/products/small_product.h"
#include "core/products/transpose.h"
#include "core/tensor.h"

namespace orrery::kernels {
namespace {

// Beyond one tile for each thread, C is cut further only into tiles of at least this length along its longer side. Each
// tile copies its columns of B once, panel by panel.
constexpr i64 least_rows = 192, least_columns = 256;
// How many rows of A and B the product A^T B takes at a time: together with C they fit into a core's cache.
constexpr i64 depth_at_once = 128;
// Tiles of rows begin at a multiple of a cache line, tiles of columns at a multiple of the width of strips.
constexpr i64 line = 16, panel = 64;

// A length of tiles that gives all threads equal shares. The bits do not depend on where tiles end.
i64 share_of(i64 size, i64 least, i64 step) {
  i64 count = std::max(least_tiles(), threads());
  while (size / (2 * count) >= least) count *= 2;
  return (size + count * step - 1) / (count * step) * step;
}

// The product for one tile of C, `depth` rows of B at a time.
template <class T>
void tile_product(Strided<T> a, const Mat<const T>& b, const Mat<T>& c, const Tile& tile, i64 depth, bool add) {
  for (i64 p = 0; p == 0 || p < b.rows; p += depth) {
    const Tile rows_of_b{p, std::min(b.rows, p + depth), tile.column, tile.column_end};
    small_product<T>({a.data + tile.row * a.row + p * a.column, a.row, a.column}, part_of(b, rows_of_b),
                     part_of(c, tile), add || p > 0);
  }
}

}  // namespace

i64 Cut::tiles() const { return (size + length - 1) / std::max<i64>(1, length); }
Tile Cut::tile(i64 i, i64 m, i64 n) const {
  const i64 begin = i * length, end = std::min(size, begin + length);
  return by_rows ? Tile{begin, end, 0, n} : Tile{0, m, begin, end};
}
Cut cut_of(i64 m, i64 n, Trans trans) {
  if (m < n) return {false, n, share_of(n, least_columns, panel)};
  return {true, m, share_of(m, trans == Trans::a ? m : least_rows, line)};
}

bool runs_unpacked(i64 m, i64 n, i64 k, Trans trans) {
  switch (trans) {
    case Trans::none: return m >= 64 && (k <= 2048 || n <= 256);
    case Trans::b: return m >= 512 && k <= 512;
    case Trans::a: return m <= 1024 && k >= 64;
    default: return false;
  }
}

i64 unpacked_tiles(i64 m, i64 n, Trans trans) { return cut_of(m, n, trans).tiles(); }

template <class T>
void unpacked_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                      const TileWork& finish) {
  Tensor copy;
  if (trans == Trans::b) {
    copy = Tensor::empty({b.cols, b.rows}, dtype_of<T>);
    transpose(b, copy.write<T>());
    b = {copy.data<T>(), b.cols, b.rows};
  }
  const bool columns_of_a = trans == Trans::a;
  const Strided<T> left = columns_of_a ? Strided<T>{a.data, 1, a.stride} : Strided<T>{a.data, a.stride, 1};
  const i64 depth = columns_of_a ? depth_at_once : std::max<i64>(1, b.rows);
  const Cut cut = cut_of(c.rows, c.cols, trans);
  parallel_tasks(cut.tiles(), [&](i64 i) {
    const Tile tile = cut.tile(i, c.rows, c.cols);
    if (fill) fill(tile);
    tile_product<T>(left, b, c, tile, depth, accumulate || fill);
    if (finish) finish(tile);
  });
}

template void unpacked_product(Mat<const float>, Mat<const float>, Mat<float>, Trans, bool, const TileWork&,
                               const TileWork&);
template void unpacked_product(Mat<const double>, Mat<const double>, Mat<double>, Trans, bool, const TileWork&,
                               const TileWork&);

}  // namespace orrery::kernels
