// Chapter 8. Packed products: blocks of A, strips of B, and the copies of both.
#include "core/products/packed_product.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/kernels/scratch.h"
#include "core/products/pairs.h"
#include "core/products/small_product.h"
#include "core/tensor_ops.h"

namespace orrery::kernels {
namespace {

// With at most this many rows or columns of C, or this inner size, A is read in place. A^T is then read this many rows
// at a time: together with B and C, they fit into a core's cache.
constexpr i64 rows_in_place = 16, columns_in_place = vector_registers == 32 ? 256 : 192, depth_in_place = 128;

// With few rows, a B of at least this many columns and numbers is read once, by rows. A smaller one is read by strips,
// for each of which a block of C stays in registers.
constexpr i64 columns_read_once = 128, numbers_read_once = 32768;

// A C that is far larger than a core's cache is written once, if the inner size is not above this.
constexpr i64 depth_of_far = 1024, bytes_of_far = 1 << 23;

// A strip of B has the columns of a block of C. Where several blocks of A need them, the strips of at most this many
// columns are kept.
constexpr i64 most_columns = 1024;

CacheSizes caches_of_this_cpu() {
  CacheSizes sizes;
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (const long bytes = ::sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) sizes.first = bytes;
  if (const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) sizes.second = bytes;
#endif
  return sizes;
}
template <class Form> const Blocking& blocking() {
  static const Blocking read_once = blocking_for(caches_of_this_cpu(), Form::width * Form::bytes);
  return read_once;
}

i64 blocks_in(i64 size, i64 block) { return (size + block - 1) / block; }

// The length of parts that are equal, multiples of `step`, and about `most` or less.
i64 even_part(i64 size, i64 most, i64 step) {
  const i64 parts = std::max<i64>(1, blocks_in(size, std::max(most, step)));
  return std::max<i64>(1, blocks_in(size, parts * step)) * step;
}

// C in a grid of tiles, one for each thread; the last of a row or column may be smaller.
struct Grid {
  i64 m, n, rows, columns;
  i64 across() const { return blocks_in(n, columns); }
  i64 tiles() const { return blocks_in(m, rows) * across(); }
  Tile tile(i64 i) const {
    const i64 row = i / across() * rows, column = i % across() * columns;
    return {row, std::min(m, row + rows), column, std::min(n, column + columns)};
  }
};

// The grid whose largest tile takes the least time, in multiply-adds for each inner number. A tile packs its rows of A
// and its columns of B, and to pack a number takes about as long as `packing` multiply-adds
// (apps/measure/bench/README.md). Tiles are made of whole blocks.
Grid grid_of(i64 m, i64 n, i64 k, i64 block, i64 strip, i64 packing) {
  const i64 most = threads_for(m * n * k), row_blocks = std::max<i64>(1, blocks_in(m, block)),
            strips = std::max<i64>(1, blocks_in(n, strip));
  Grid best{m, n, row_blocks * block, strips * strip};
  i64 least = std::numeric_limits<i64>::max();
  for (i64 down = most; down >= 1; --down) {
    const i64 rows = blocks_in(row_blocks, down) * block, columns = blocks_in(strips, most / down) * strip,
              cost = rows * columns + packing * (rows + columns);
    if (cost < least) {
      least = cost;
      best = {m, n, rows, columns};
    }
  }
  return best;
}
template <class Form> Grid grid_for(i64 m, i64 n, i64 k) {
  return grid_of(m, n, k, Form::rows, std::max<i64>(Form::width, 16), Form::packing);
}

// A form says how factors are packed: `rows` rows of A and `width` columns of B at a time, and a multiple of `step`
// inner numbers, `stored` elements of `bytes` bytes for each, at least `least_depth` at once. Of B, which is read by
// rows, `panel` columns are packed at once; `packing` is what grid_of needs. A form also says how a packed block of A,
// with as many rows as c, is multiplied with the packed strips of a panel: it does `work` on c while that is in a
// cache, and may fetch `next`, which is packed after it. `begin` and `end` enclose the work of a thread on a tile.

// As they are or rounded, for small_product.h.
template <class T, bool rounds> struct InOrder {
  using Packed = T;
  static constexpr i64 rows = block_rows, width = strip_width<T>, panel = 64, step = 8, bytes = sizeof(T), packing = 8;
  // Wide vectors read a strip from the second cache as fast as from the first: C is read and written less often.
  static constexpr i64 least_depth = vector_registers == 32 ? 512 : 1;
  static constexpr bool reads_in_place = !rounds;
  static i64 stored(i64 depth) { return depth; }
  void begin() const {}
  void end() const {}

  template <i64 size> static void pack_and_round(const Strided<T>& from, i64 count, i64 depth, T* to) {
    pack_panels<T, size>(from, count, depth, to);
    if constexpr (rounds)
      for (i64 i = 0; i < blocks_in(count, size) * size * depth; ++i) to[i] = rounded_to_bf16(to[i]);
  }
  static void pack_rows(const Strided<T>& from, i64 count, i64 depth, T* to) {
    pack_and_round<rows>(from, count, depth, to);
  }
  static void pack_strips(const Strided<T>& from, i64 count, i64 depth, T* to) {
    pack_and_round<width>(from, count, depth, to);
  }

  // Each block fetches its share of what follows the strip: the next one, if it is packed already.
  static void multiply(const T* blocks, const T* strips, const Mat<T>& c, i64 depth, bool add, const PartWork& work,
                       const Rows<T>&) {
    const i64 share = blocks_in(width, blocks_in(c.rows, rows));  // for each inner number
    in_parts(c, work, [&](const Tile& part) {
      const T *strip = strips + part.column * depth, *next = strip + (width + part.row / rows * share) * depth;
      for (i64 i = part.row; i < part.row_end; i += rows, next += share * depth) {
        const Tile block{i, std::min(part.row_end, i + rows), part.column, part.column_end};
        packed_rows_product<T>(blocks + i * depth, strip, depth, part_of(c, block), add, {next, share, share});
      }
    });
  }
  // The same with an A that is not packed.
  static void multiply_in_place(const Strided<T>& a, const T* strips, const Mat<T>& c, i64 depth, bool add,
                                const PartWork& work) {
    in_parts(c, work, [&](const Tile& part) {
      const Mat<const T> strip(strips + part.column * depth, depth, part.column_end - part.column, width);
      small_product<T>(part_from(a, part.row, 0), strip, part_of(c, part), add);
    });
  }
  // Calls multiply(part) for the strips of c, and works on a few rows at a time, while they are in the nearest cache.
  // Rows of narrow strips are too short for that, and a last part of few columns would be copied for each.
  template <class Multiply> static void in_parts(const Mat<T>& c, const PartWork& work, const Multiply& multiply) {
    const i64 step = width == panel && c.cols == panel && (work.fill || work.finish) ? rows : c.rows;
    for (i64 i = 0; i < c.rows; i += step) {
      const Tile all{i, std::min(c.rows, i + step), 0, c.cols};
      work.begin(all);
      for (i64 j = 0; j < c.cols; j += width) multiply(Tile{i, all.row_end, j, std::min(c.cols, j + width)});
      work.end(all);
    }
  }
};

// A product for one tile of C, whose rows are those of a and whose columns are the rows of b_t, by one thread.
template <class T, class Form> class TileProduct {
 public:
  using Packed = typename Form::Packed;
  static constexpr i64 panel = Form::panel;

  TileProduct(const Form& form, i64 rows, i64 columns, i64 k)
      : form_(form),
        in_place_(Form::reads_in_place &&
                  (rows <= rows_in_place || columns <= columns_in_place || k <= depth_in_place)),
        depth_(even_part(k, depth_for(rows, columns, k), Form::step)),
        rows_(even_part(rows, blocking<Form>().block_bytes / (depth_ * Form::bytes), Form::rows)),
        columns_(in_place_ || rows <= rows_ ? panel : std::min(blocks_in(columns, panel) * panel, most_columns)),
        keeps_(columns_ > panel) {}

  // The numbers of memory that it needs.
  i64 scratch_size() const {
    return (columns_ + (in_place_ ? 0 : rows_)) * Form::stored(depth_) * i64{sizeof(Packed)} / i64{sizeof(T)};
  }

  void operator()(const Strided<T>& a, const Strided<T>& b_t, const Mat<T>& c, i64 k, bool add, const PartWork& work,
                  T* scratch) const {
    if (in_place_ && b_t.row == 1) {
      const Tile all{0, c.rows, 0, c.cols};
      work.begin(all);
      unpacked(a, b_t, c, k, add);
      return work.end(all);
    }
    form_.begin();
    for (i64 p = 0; p == 0 || p < k; p += depth_) {
      const i64 depth = std::min(depth_, k - p), step = keeps_ ? columns_ : c.cols;
      for (i64 j = 0; j < c.cols; j += step)
        for (i64 i = 0; i < c.rows; i += in_place_ ? c.rows : rows_) {
          const Tile part{i, in_place_ ? c.rows : std::min(c.rows, i + rows_), j, std::min(c.cols, j + step)};
          rows_product(part_from(a, i, p), part_from(b_t, j, p), part_of(c, part), depth, add || p > 0, i == 0,
                       work.at(i, j, p == 0, p + depth_ >= k), scratch);
        }
    }
    form_.end();
  }

 private:
  static i64 depth_for(i64 rows, i64 columns, i64 k) {
    const bool far = rows * columns * i64{sizeof(T)} > bytes_of_far && k <= depth_of_far;
    return far ? k : std::max(blocking<Form>().depth, Form::least_depth);
  }
  static void unpacked(const Strided<T>& a, const Strided<T>& b_t, const Mat<T>& c, i64 k, bool add) {
    if (c.rows <= rows_in_place && c.cols >= columns_read_once && k * c.cols >= numbers_read_once)
      return few_rows_product<T>(a, {b_t.data, k, c.cols, b_t.column}, c, add);
    const i64 depth = a.row == 1 ? depth_in_place : std::max<i64>(1, k);
    for (i64 p = 0; p == 0 || p < k; p += depth)
      small_product<T>(part_from(a, 0, p), {b_t.data + p * b_t.column, std::min(depth, k - p), c.cols, b_t.column}, c,
                       add || p > 0);
  }

  // The rows of a block of A, times `depth` numbers of all strips of b_t, which are packed for the first rows.
  void rows_product(const Strided<T>& a, const Strided<T>& b_t, const Mat<T>& c, i64 depth, bool add, bool first,
                    const PartWork& work, T* scratch) const {
    const i64 stored = Form::stored(depth);
    Packed *strips = reinterpret_cast<Packed*>(scratch), *block = strips + columns_ * Form::stored(depth_);
    if (!in_place_) form_.pack_rows(a, c.rows, depth, block);
    for (i64 j = 0; j < c.cols; j += panel) {
      const i64 panel_end = std::min(c.cols, j + panel);
      const Mat<T> part = part_of(c, {0, c.rows, j, panel_end});
      const PartWork on_part = work.at(0, j, work.first, work.last);
      const bool packs = first || !keeps_;
      Packed* strip = strips + (keeps_ ? j * stored : 0);
      if (packs) form_.pack_strips(part_from(b_t, j, 0), part.cols, depth, strip);
      if constexpr (Form::reads_in_place) {
        if (in_place_) {
          form_.multiply_in_place(a, strip, part, depth, add, on_part);
          continue;
        }
      }
      const i64 next = packs ? std::min(panel, c.cols - panel_end) : 0;
      form_.multiply(block, strip, part, depth, add, on_part, {part_from(b_t, panel_end, 0), next});
    }
  }

  Form form_;
  bool in_place_;
  i64 depth_, rows_, columns_;
  bool keeps_;
};

template <class T, class Form>
void product_in(const Form& form, const Mat<const T>& a, const Mat<const T>& b, const Mat<T>& c, Trans trans,
                bool accumulate, const TileWork& fill, const TileWork& finish) {
  const Strided<T> left = left_factor(a, trans), right = right_factor(b, trans);
  const i64 k = inner_size(a, trans);
  const Grid grid = grid_for<Form>(c.rows, c.cols, k);
  const Tile largest = grid.tile(0);
  const TileProduct<T, Form> product(form, largest.row_end, largest.column_end, k);
  tasks_with_scratch<T>(grid.tiles(), product.scratch_size(), [&](i64 i, T* scratch) {
    const Tile tile = grid.tile(i);
    product(part_from(left, tile.row, 0), part_from(right, tile.column, 0), part_of(c, tile), k, accumulate || fill,
            {fill, finish, tile.row, tile.column}, scratch);
  });
}

// Calls use(form) with the form for factors in bf16, by this kernel if there is one.
template <class Use> void with_bf16_form(const std::optional<PairKernel>& kernel, const Use& use) {
  kernel ? use(Pairs{*kernel}) : use(InOrder<float, true>());
}
// The same for any factors.
template <class T, class Use> void with_form([[maybe_unused]] Factors factors, const Use& use) {
  if constexpr (std::is_same_v<T, float>) {
    if (factors == Factors::bf16) return with_bf16_form(bf16_kernel().kernel, use);
  }
  use(InOrder<T, false>());
}

}  // namespace

Blocking blocking_for(const CacheSizes& caches, i64 strip_bytes) {
  return {std::clamp<i64>(caches.first / strip_bytes, 256, 512), std::clamp<i64>(caches.second / 2, 1 << 16, 1 << 20)};
}

i64 packed_tiles(i64 m, i64 n, i64 k) { return grid_for<InOrder<float, false>>(m, n, k).tiles(); }

void bf16_product(const std::optional<PairKernel>& kernel, Mat<const float> a, Mat<const float> b, Mat<float> c,
                  Trans trans, bool accumulate) {
  with_bf16_form(kernel,
                 [&](const auto& form) { product_in<float>(form, a, b, c, trans, accumulate, nullptr, nullptr); });
}

bool agrees_with_plain_form(const PairKernel& kernel) {
  constexpr i64 m = 75, n = 45, k = 95;  // edges on all sides, and sums of at most 95
  constexpr double tolerance = 1e-4;     // at least 10 times what the order of sums costs
  PairKernel plain = kernel;
  plain.block = kernel.plain;
  plain.pack = plain_pack;
  Rng rng(1);
  const Tensor a = rand_uniform({m * k}, -1, 1, rng), b = rand_uniform({k * n}, -1, 1, rng);
  for (const Trans trans : {Trans::none, Trans::both}) {
    const bool turned = trans == Trans::both;
    const auto product_by = [&](const PairKernel& used) {
      Tensor c = full({m, n}, 1.0);
      bf16_product(used, {a.data<float>(), turned ? k : m, turned ? m : k},
                   {b.data<float>(), turned ? n : k, turned ? k : n}, {c.write<float>(), m, n}, trans, turned);
      return c;
    };
    const Tensor difference = sub(product_by(kernel), product_by(plain));
    for (i64 i = 0; i < m * n; ++i)
      if (!(std::fabs(difference.at(i)) <= tolerance)) return false;
  }
  return true;
}

const Bf16Kernel& bf16_kernel() {
  static const Bf16Kernel chosen = [] {
    Bf16Kernel choice;
    for (const PairKernel& usable : usable_pair_kernels()) {
      if (!usable.pays) continue;
      if (agrees_with_plain_form(usable)) {
        choice.kernel = usable;
        break;
      }
      choice.wrong = usable.name;
    }
    return choice;
  }();
  return chosen;
}

template <class T>
void packed_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                    const TileWork& finish, Factors factors) {
  with_form<T>(factors, [&](const auto& form) { product_in<T>(form, a, b, c, trans, accumulate, fill, finish); });
}

template <class T>
void packed_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c, Trans trans,
                  bool accumulate, Factors factors) {
  const i64 k = inner_size(a.first, trans);
  with_form<T>(factors, [&]<class Form>(const Form& form) {
    const TileProduct<T, Form> product(form, c.first.rows, c.first.cols, k);
    const auto one = [&](i64 i, T* scratch) {
      product(left_factor(a[i], trans), right_factor(b[i], trans), c[i], k, accumulate, {}, scratch);
    };
    tasks_with_scratch<T>(count, product.scratch_size(), one, count * c.first.rows * c.first.cols * k);
  });
}

template void packed_product(Mat<const float>, Mat<const float>, Mat<float>, Trans, bool, const TileWork&,
                             const TileWork&, Factors);
template void packed_product(Mat<const double>, Mat<const double>, Mat<double>, Trans, bool, const TileWork&,
                             const TileWork&, Factors);
template void packed_batch(i64, const MatBatch<const float>&, const MatBatch<const float>&, const MatBatch<float>&,
                           Trans, bool, Factors);
template void packed_batch(i64, const MatBatch<const double>&, const MatBatch<const double>&, const MatBatch<double>&,
                           Trans, bool, Factors);

}  // namespace orrery::kernels
