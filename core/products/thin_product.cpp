// Chapter 8. Dot products of a few rows of x with many rows of W.
#include "core/products/thin_product.h"

#include <type_traits>
#include <utility>

#include "core/machine/parallel.h"
#include "core/machine/vector.h"
#include "core/products/bf16.h"

namespace orrery::kernels {
namespace {

template <class T> using Vector = typename VectorOf<T>::type;

// Rows of W that are multiplied with all rows of x before the next ones are read, so they stay in the nearest cache.
constexpr i64 group = 12;
static_assert(thin_tile_step % group == 0, "a tile is made of whole groups");
// The most rows of x in a block, and the most registers for sums: 24 of 32, or 12 of 16. The others hold factors.
constexpr int most_rows = vector_registers == 32 ? 8 : 4;
constexpr i64 most_sums = vector_registers * 3 / 4;

// Rows of W in a block with `rows` rows of x: as many as registers can hold, and a divisor of `group`.
constexpr int columns_of(int rows) {
  i64 columns = std::min(group, most_sums / rows);
  while (group % columns != 0) --columns;
  return static_cast<int>(columns);
}

// Splits a and b into segments of `count` lanes, and adds the upper half of each segment to its lower half. With four
// lanes:  count 4: a0 + a2, a1 + a3, b0 + b2, b1 + b3;  count 2: a0 + a1, b0 + b1, a2 + a3, b2 + b3.
template <class T, i64 count, size_t... i>
Vector<T> halves_added(const Vector<T>& a, const Vector<T>& b, std::index_sequence<i...>) {
  constexpr size_t half = count / 2, lanes = sizeof...(i);
  const auto from = [](size_t lane) { return lane / count * count + lane % half + (lane / half % 2 == 0 ? 0 : lanes); };
  return __builtin_shufflevector(a, b, from(i)...) + __builtin_shufflevector(a, b, (from(i) + half)...);
}

// Lane i of the result is the sum of all lanes of vector i, for as many vectors as a vector has lanes. Upper halves are
// added to lower halves until one lane is left.
template <class T, i64 count = VectorOf<T>::lanes> Vector<T> sums_of_lanes(const Vector<T>* sums) {
  if constexpr (count == 1) {
    return *sums;
  } else {
    Vector<T> half[count / 2];
    for (i64 i = 0; i < count / 2; ++i)
      half[i] = halves_added<T, count>(sums[i], sums[i + count / 2], std::make_index_sequence<VectorOf<T>::lanes>());
    return sums_of_lanes<T, count / 2>(half);
  }
}

// A number or a vector of W as a product reads it: rounded, if need be, on its way into a register.
template <Factors factors, class V> V factor(const V& w) {
  using Bits [[gnu::vector_size(sizeof(V))]] = u32;
  if constexpr (factors == Factors::exact)
    return w;
  else if constexpr (std::is_same_v<V, float>)
    return rounded_to_bf16(w);
  else
    return rounded_to_bf16<Bits>(w);
}

// The rest of a row, which does not fill a vector. Not inlined, so that it is compiled the same for every block.
template <Factors factors, class T> [[gnu::noinline]] T with_rest(T total, const T* x, const T* w, i64 n) {
  for (i64 i = 0; i < n; ++i) total += x[i] * factor<factors>(w[i]);
  return total;
}

// Loads a vector and keeps it in a register. Otherwise it is loaded again for each use, and loads are the bottleneck
// here.
template <class T> Vector<T> loaded(const T* from) {
  Vector<T> v = load<Vector<T>>(from);
  keep_in_register(v);
  return v;
}

// Adds to sum[r * step + j], in lanes, the products of `rows` rows of x with `columns` rows of W: enough sums that no
// addition has to wait for the one before it. Vectors of the factor with fewer rows are kept in registers while those
// of the other one are read in turn. Returns how many numbers of each row were used: those that fill vectors.
template <Factors factors, class T, int rows, int columns>
i64 add_vectors(const T* x, i64 x_stride, const T* W, i64 W_stride, i64 k, Vector<T>* sum, int step) {
  constexpr i64 lanes = VectorOf<T>::lanes;
  constexpr bool keeps_x = rows < columns;
  constexpr int kept_rows = std::min(rows, columns), other_rows = std::max(rows, columns);
  // If several rows of x have to use the present group first, the next group of rows of W is prefetched into the second
  // cache. Past the end of W this does no harm, since a prefetch never fails. One row of x only reads W, so that the
  // CPU fetches ahead by itself, and prefetches would take the place of loads.
  const T* ahead = W + group * W_stride;
  i64 p = 0;
  for (; p + lanes <= k; p += lanes) {
    const auto of_x = [&](int r) { return loaded(x + r * x_stride + p); };
    const auto of_W = [&](int j) { return factor<factors>(loaded(W + j * W_stride + p)); };
    for (int j = 0; rows > 1 && j < columns; ++j) __builtin_prefetch(ahead + j * W_stride + p, 0, 2);
    Vector<T> kept[kept_rows];
    for (int i = 0; i < kept_rows; ++i) kept[i] = keeps_x ? of_x(i) : of_W(i);
    for (int j = 0; j < other_rows; ++j) {
      const Vector<T> other = keeps_x ? of_W(j) : of_x(j);
      for (int i = 0; i < kept_rows; ++i) sum[keeps_x ? i * step + j : j * step + i] += kept[i] * other;
    }
  }
  return p;
}

// `rows` rows of x with `columns` rows of W. With one row of x, more than a few rows of W at once would need more
// addresses than there are registers.
template <Factors factors, class T, int rows, int columns>
void block(const T* x, i64 x_stride, const T* W, i64 W_stride, i64 k, T* c, i64 c_stride) {
  constexpr i64 lanes = VectorOf<T>::lanes, vectors = (rows * columns + lanes - 1) / lanes;
  constexpr int at_once = rows == 1 ? std::min(columns, 4) : columns;
  static_assert(columns % at_once == 0);
  Vector<T> sum[vectors * lanes] = {};
  i64 p = 0;
  for (int j = 0; j < columns; j += at_once)
    p = add_vectors<factors, T, rows, at_once>(x, x_stride, W + j * W_stride, W_stride, k, sum + j, columns);
  T total[vectors * lanes];
  for (i64 v = 0; v < vectors; ++v) {
    const Vector<T> combined = sums_of_lanes<T>(sum + v * lanes);
    store(combined, total + v * lanes);
  }
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < columns; ++j) {
      T& dot = total[r * columns + j];
      if (p < k) dot = with_rest<factors>(dot, x + r * x_stride + p, W + j * W_stride + p, k - p);
      c[r * c_stride + j] += dot;
    }
  }
}

template <Factors factors, class T, int rows>
void strip(const T* x, i64 x_stride, const Mat<const T>& W, T* c, i64 c_stride) {
  constexpr int columns = columns_of(rows);
  i64 j = 0;
  for (; j + columns <= W.rows; j += columns)
    block<factors, T, rows, columns>(x, x_stride, W.data + j * W.stride, W.stride, W.cols, c + j, c_stride);
  for (; j < W.rows; ++j)
    block<factors, T, rows, 1>(x, x_stride, W.data + j * W.stride, W.stride, W.cols, c + j, c_stride);
}

// A group of rows of W with all rows of x: `rows` rows of x at a time, then the rest.
template <Factors factors, class T, int rows = most_rows>
void add_group(Mat<const T> x, const Mat<const T>& W, Mat<T> c) {
  for (; x.rows >= rows; x.rows -= rows, x.data += rows * x.stride, c.data += rows * c.stride)
    strip<factors, T, rows>(x.data, x.stride, W, c.data, c.stride);
  if constexpr (rows > 1) add_group<factors, T, rows - 1>(x, W, c);
}

template <Factors factors, class T> void add_groups(const Mat<const T>& x, const Mat<const T>& W, const Mat<T>& c) {
  for (i64 j = 0; j < W.rows; j += group) {
    const i64 end = std::min(W.rows, j + group);
    add_group<factors, T>(x, part_of(W, {j, end, 0, W.cols}), part_of(c, {0, c.rows, j, end}));
  }
}

}  // namespace

template <class T> void add_thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c) {
  add_groups<Factors::exact, T>(x, W, c);
}

void add_rounded_thin_product(Mat<const float> x, Mat<const float> W, Mat<float> c) {
  constexpr i64 rows = thin_rows, depth = 512;
  alignas(64) float rounded[rows * depth];
  for (i64 p = 0; p < W.cols; p += depth)
    for (i64 i = 0; i < c.rows; i += rows) {
      const i64 p_end = std::min(W.cols, p + depth), i_end = std::min(c.rows, i + rows);
      add_groups<Factors::bf16, float>(rounded_part(x, {i, i_end, p, p_end}, rounded),
                                       part_of(W, {0, W.rows, p, p_end}), part_of(c, {i, i_end, 0, c.cols}));
    }
}

namespace {

// With at most this many numbers of W, one thread is done before others could have started.
constexpr i64 least_shared = 16384;

i64 blocks_of(i64 rows) { return (rows + thin_tile_step - 1) / thin_tile_step; }
i64 blocks_of_tile(i64 n, i64 k) {
  return n * k <= least_shared ? std::max<i64>(1, blocks_of(n)) : row_grain(thin_tile_step * k);
}

}  // namespace

i64 thin_tiles(i64 n, i64 k) {
  const i64 grain = blocks_of_tile(n, k);
  return (blocks_of(n) + grain - 1) / grain;
}

template <class T>
void thin_product(Mat<const T> x, Mat<const T> W, Mat<T> c, bool accumulate, const TileWork& fill,
                  const TileWork& finish, Factors factors) {
  // Tasks are blocks of rows of W, so that tiles begin at multiples of thin_tile_step. A chunk of blocks stays in a
  // core's cache while the rows of x are read.
  parallel_for(blocks_of(W.rows), blocks_of_tile(W.rows, W.cols), [&](i64 first, i64 last) {
    const i64 begin = first * thin_tile_step, end = std::min(W.rows, last * thin_tile_step);
    const Tile tile{0, c.rows, begin, end};
    if (fill) {
      fill(tile);
    } else if (!accumulate) {
      set_to_zero<T>({c.data + begin, c.rows, end - begin, c.stride});
    }
    const Mat<const T> W_part = part_of(W, {begin, end, 0, W.cols});
    if constexpr (std::is_same_v<T, float>) {
      factors == Factors::bf16 ? add_rounded_thin_product(x, W_part, part_of(c, tile))
                               : add_thin_product<T>(x, W_part, part_of(c, tile));
    } else {
      add_thin_product<T>(x, W_part, part_of(c, tile));
    }
    if (finish) finish(tile);
  });
}

template void add_thin_product(Mat<const float>, Mat<const float>, Mat<float>);
template void add_thin_product(Mat<const double>, Mat<const double>, Mat<double>);
template void thin_product(Mat<const float>, Mat<const float>, Mat<float>, bool, const TileWork&, const TileWork&,
                           Factors);
template void thin_product(Mat<const double>, Mat<const double>, Mat<double>, bool, const TileWork&, const TileWork&,
                           Factors);

}  // namespace orrery::kernels
