// Chapter 8. Packed products: blocks of A, strips of B, and the copies of both.
#include "core/products/packed_product.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/kernels/scratch.h"
#include "core/products/small_product.h"

namespace orrery::kernels {
namespace {

// C is cut along its longer side, into one tile for each thread, since each tile packs the other factor again. Tiles of
// rows begin at a multiple of a cache line, tiles of columns at a multiple of the width of strips.
constexpr i64 line = 16, panel = 64;

// With at most this many rows or columns of C, or this inner size, A is read in place. A^T is then read this many rows
// at a time: together with B and C, they fit into a core's cache.
constexpr i64 rows_in_place = 16, columns_in_place = 192, depth_in_place = 128;

// A strip of B has the columns of a block of C (small_product.h). As many as there are in `panel` columns are packed at
// once, since B is read by rows.
template <class T> constexpr i64 strip_width = block_vectors* vector_bytes / sizeof(T);
// Where several blocks of A need them, the strips of at most this many columns are kept.
constexpr i64 most_columns = 1024;

// What is packed at once: this many inner numbers, so that a strip fills the first cache, but at least 256 of them; and
// a block of A of this size, most of the second cache.
struct Blocking {
  i64 depth, block_bytes;
};
template <class T> const Blocking& blocking() {
  static const Blocking read_once = [] {
    i64 first = 1 << 15, second = 1 << 19;  // where the system does not tell
#ifdef _SC_LEVEL1_DCACHE_SIZE
    if (const long bytes = ::sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) first = bytes;
    if (const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) second = bytes;
#endif
    return Blocking{std::clamp<i64>(first / (strip_width<T> * i64{sizeof(T)}), 256, 512), second / 4 * 3};
  }();
  return read_once;
}

// The length of parts that are equal, multiples of `step`, and about `most` or less.
i64 even_part(i64 size, i64 most, i64 step) {
  most = std::max(most, step);
  const i64 parts = std::max<i64>(1, (size + most - 1) / most);
  return std::max<i64>(1, (size + parts * step - 1) / (parts * step)) * step;
}

struct Cut {
  bool by_rows;
  i64 size, length;
  i64 tiles() const { return (size + length - 1) / length; }
  Tile tile(i64 i, i64 m, i64 n) const {
    const i64 begin = i * length, end = std::min(size, begin + length);
    return by_rows ? Tile{begin, end, 0, n} : Tile{0, m, begin, end};
  }
};
// Gives all threads equal shares.
Cut cut_of(i64 m, i64 n) {
  const bool by_rows = m >= n;
  const i64 size = by_rows ? m : n, step = by_rows ? line : panel, count = threads();
  return {by_rows, size, std::max<i64>(1, (size + count * step - 1) / (count * step)) * step};
}

// The square matrix of the vectors v[0], v[1], ... is transposed: quarters are exchanged, then theirs, and so on.
template <size_t step, class V, size_t... l> void exchange(V& a, V& b, std::index_sequence<l...>) {
  constexpr size_t lanes = sizeof...(l);
  const V upper = __builtin_shufflevector(a, b, ((l & step) == 0 ? l : lanes + l - step)...);
  b = __builtin_shufflevector(a, b, ((l & step) == 0 ? l + step : lanes + l)...);
  a = upper;
}
template <size_t lanes, size_t step = lanes / 2, class V> void transpose_vectors(V* v) {
  for (size_t i = 0; i < lanes; ++i)
    if ((i & step) == 0) exchange<step>(v[i], v[i + step], std::make_index_sequence<lanes>());
  if constexpr (step > 1) transpose_vectors<lanes, step / 2>(v);
}

// The part of x that begins at (i, p).
template <class T> Strided<T> part_from(const Strided<T>& x, i64 i, i64 p) {
  return {x.data + i * x.row + p * x.column, x.row, x.column};
}

// Rows [0, rows) and columns [0, depth) of `from` become columns of `to`, which are `width` apart and padded with
// zeros. A few numbers beyond them may be overwritten.
template <class T, i64 width> void pack(const Strided<T>& from, i64 rows, i64 depth, T* to) {
  constexpr i64 lanes = std::min<i64>(vector_bytes, 32) / sizeof(T),
                at_once = width % lanes == 0 ? 1 : width / lanes + 1;
  using Vector = typename VectorOf<T, lanes>::type;
  i64 p = 0;
  for (; from.row == 1 && rows == width && p < depth; ++p)
    for (i64 i = 0; i < width; ++i) to[p * width + i] = from.data[p * from.column + i];
  for (; from.column == 1 && p + lanes <= depth; p += lanes) {
    for (i64 i = 0; i < width; i += at_once * lanes) {
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
    }
  }
  for (; p < depth; ++p)
    for (i64 i = 0; i < width; ++i) to[p * width + i] = i < rows ? from.data[i * from.row + p * from.column] : T{0};
}

// op(A), and the transpose of op(B).
template <class T> Strided<T> left_factor(const Mat<const T>& a, Trans trans) {
  return transposes_a(trans) ? Strided<T>{a.data, 1, a.stride} : Strided<T>{a.data, a.stride, 1};
}
template <class T> Strided<T> right_factor(const Mat<const T>& b, Trans trans) {
  return transposes_b(trans) ? Strided<T>{b.data, b.stride, 1} : Strided<T>{b.data, 1, b.stride};
}

// A packed block of A with as many rows as c, times a packed strip of B. What is needed next of c and of B, whose next
// strip follows this one, is fetched meanwhile.
template <class T> void block_product(const T* block, const Mat<const T>& strip, const Mat<T>& c, bool add) {
  constexpr i64 in_line = 64 / sizeof(T);
  const i64 panels = (c.rows + block_rows - 1) / block_rows, size = strip.rows * strip.stride,
            share = (size / in_line + panels - 1) / panels * in_line;
  const T* next_strip = strip.data + size;
  for (i64 i = 0; i < c.rows; i += block_rows, block += strip.rows * block_rows, next_strip += share) {
    const i64 end = std::min(c.rows, i + block_rows);
    for (i64 next = end; next < std::min(c.rows, end + block_rows); ++next)
      for (i64 j = 0; j < c.cols; j += in_line) __builtin_prefetch(c.data + next * c.stride + j, 1);
    for (i64 x = 0; x < share; x += in_line) __builtin_prefetch(next_strip + x);
    small_product<T>({block, 1, block_rows}, strip, part_of(c, {i, end, 0, c.cols}), add);
  }
}

// A product for one tile of C, whose rows are those of a and whose columns are the rows of b_t, by one thread.
template <class T> class TileProduct {
 public:
  TileProduct(i64 rows, i64 columns, i64 k)
      : in_place_(rows <= rows_in_place || columns <= columns_in_place || k <= depth_in_place),
        depth_(even_part(k, blocking<T>().depth, 8)),
        rows_(even_part(rows, blocking<T>().block_bytes / (depth_ * i64{sizeof(T)}), block_rows)),
        columns_(in_place_ || rows <= rows_ ? panel : std::min((columns + panel - 1) / panel * panel, most_columns)),
        keeps_(columns_ > panel) {}

  // The numbers of memory that it needs.
  i64 scratch_size() const { return (columns_ + (in_place_ ? 0 : rows_)) * depth_ + panel; }

  void operator()(const Strided<T>& a, const Strided<T>& b_t, const Mat<T>& c, i64 k, bool add, T* scratch) const {
    if (in_place_ && b_t.row == 1) return unpacked(a, b_t, c, k, add);
    for (i64 p = 0; p == 0 || p < k; p += depth_) {
      const i64 depth = std::min(depth_, k - p), step = keeps_ ? columns_ : c.cols;
      for (i64 j = 0; j < c.cols; j += step)
        for (i64 i = 0; i < c.rows; i += in_place_ ? c.rows : rows_) {
          const Tile part{i, in_place_ ? c.rows : std::min(c.rows, i + rows_), j, std::min(c.cols, j + step)};
          rows_product(part_from(a, i, p), part_from(b_t, j, p), part_of(c, part), depth, add || p > 0, i == 0,
                       scratch);
        }
    }
  }

 private:
  static void unpacked(const Strided<T>& a, const Strided<T>& b_t, const Mat<T>& c, i64 k, bool add) {
    const i64 depth = a.row == 1 ? depth_in_place : std::max<i64>(1, k);
    for (i64 p = 0; p == 0 || p < k; p += depth)
      small_product<T>(part_from(a, 0, p), {b_t.data + p * b_t.column, std::min(depth, k - p), c.cols, b_t.column}, c,
                       add || p > 0);
  }

  // The rows of a block of A, times `depth` numbers of all strips of b_t, which are packed for the first rows.
  void rows_product(const Strided<T>& a, const Strided<T>& b_t, const Mat<T>& c, i64 depth, bool add, bool first,
                    T* scratch) const {
    constexpr i64 width = strip_width<T>;
    T *strips = scratch, *block = scratch + columns_ * depth_;
    for (i64 i = 0; i < c.rows && !in_place_; i += block_rows)
      pack<T, block_rows>(part_from(a, i, 0), std::min<i64>(block_rows, c.rows - i), depth, block + i * depth);
    for (i64 j = 0; j < c.cols; j += panel) {
      const i64 panel_end = std::min(c.cols, j + panel);
      T* packed = strips + (keeps_ ? j * depth : 0);
      for (i64 s = j; s < panel_end && (first || !keeps_); s += width)
        pack<T, width>(part_from(b_t, s, 0), std::min(width, panel_end - s), depth, packed + (s - j) * depth);
      for (i64 s = j; s < panel_end; s += width) {
        const i64 end = std::min(panel_end, s + width);
        const Mat<const T> strip{packed + (s - j) * depth, depth, end - s, width};
        const Mat<T> part = part_of(c, {0, c.rows, s, end});
        if (in_place_)
          small_product<T>(a, strip, part, add);
        else
          block_product<T>(block, strip, part, add);
      }
    }
  }

  bool in_place_;
  i64 depth_, rows_, columns_;
  bool keeps_;
};

template <class T> i64 inner_size(const Mat<const T>& a, Trans trans) { return transposes_a(trans) ? a.rows : a.cols; }

}  // namespace

i64 packed_tiles(i64 m, i64 n) { return cut_of(m, n).tiles(); }

template <class T>
void packed_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                    const TileWork& finish) {
  const Strided<T> left = left_factor(a, trans), right = right_factor(b, trans);
  const i64 k = inner_size(a, trans);
  const Cut cut = cut_of(c.rows, c.cols);
  const Tile largest = cut.tile(0, c.rows, c.cols);
  const TileProduct<T> product(largest.row_end, largest.column_end, k);
  tasks_with_scratch<T>(cut.tiles(), product.scratch_size(), [&](i64 i, T* scratch) {
    const Tile tile = cut.tile(i, c.rows, c.cols);
    if (fill) fill(tile);
    product(part_from(left, tile.row, 0), part_from(right, tile.column, 0), part_of(c, tile), k, accumulate || fill,
            scratch);
    if (finish) finish(tile);
  });
}

template <class T>
void packed_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c, Trans trans,
                  bool accumulate) {
  const i64 k = inner_size(a.first, trans);
  const TileProduct<T> product(c.first.rows, c.first.cols, k);
  tasks_with_scratch<T>(count, product.scratch_size(), [&](i64 i, T* scratch) {
    product(left_factor(a[i], trans), right_factor(b[i], trans), c[i], k, accumulate, scratch);
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
