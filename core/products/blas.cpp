// Chapter 8. The one file that calls BLAS, and only ever ?gemm with alpha = 1.
//
// Traps, all measured: gemv and asum change bits with the threads; alpha = 0 lets NaN through; a product called outside
// a parallel region, or in one that got a single thread, is threaded by OpenBLAS itself, and hangs where it does not
// get the threads it counts on.
#include "core/products/blas.h"

#include <cblas.h>
#include <omp.h>

#include <algorithm>

#include "core/machine/parallel.h"

namespace orrery::kernels {
namespace {

// C is cut into two tiles along its longer side. Their number is doubled, at most twice, while each tile still has this
// length. Each tile packs the other factor again, which costs strips of rows more than strips of columns
// (apps/measure/bench/README.md). Powers of 2 give threads equal shares.
constexpr i64 least_tiles = 2, most_tiles = 8, tile_rows = 1024, tile_columns = 256;
// Below this many multiplications a second tile costs more than it saves.
constexpr i64 one_tile_work = i64{1} << 18;
// Borders fall on multiples of the widest kernels' tiles.
constexpr i64 tile_step = 16;

// While it lives, an OpenBLAS that is built with OpenMP shares a product of this thread among `count` threads. The
// number applies to the calling thread alone; inside a parallel region, to its task.
class BlasThreads {
 public:
  explicit BlasThreads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~BlasThreads() { omp_set_num_threads(before_); }
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  const int before_;
};

// BLAS's ?gemm for a type of elements.
constexpr auto* blas_gemm(float) { return &cblas_sgemm; }
constexpr auto* blas_gemm(double) { return &cblas_dgemm; }

// c = op(a) op(b), or c += op(a) op(b) with `accumulate`: one call of BLAS.
template <class T>
void single_product(const Mat<const T>& a, const Mat<const T>& b, const Mat<T>& c, Trans trans, bool accumulate) {
  const auto transposed = [](bool yes) { return yes ? CblasTrans : CblasNoTrans; };
  const auto size = [](i64 n) { return static_cast<blasint>(n); };
  blas_gemm(T{})(CblasRowMajor, transposed(transposes_a(trans)), transposed(transposes_b(trans)), size(c.rows),
                 size(c.cols), size(inner_size(a, trans)), T{1}, a.data, size(a.stride), b.data, size(b.stride),
                 accumulate ? T{1} : T{0}, c.data, size(c.stride));
}

// The part of a factor that gives rows [begin, end) of op(a), or columns [begin, end) of op(b).
template <class T> Mat<T> rows_of(const Mat<T>& a, bool transposed, i64 begin, i64 end) {
  if (transposed) return {a.data + begin, a.rows, end - begin, a.stride};
  return {a.data + begin * a.stride, end - begin, a.cols, a.stride};
}
template <class T> Mat<T> columns_of(const Mat<T>& b, bool transposed, i64 begin, i64 end) {
  return rows_of(b, !transposed, begin, end);
}

// The length of each of about `tiles` tiles along a side; the last may be shorter.
i64 tile_length(i64 side, i64 tiles) { return ((side + tiles - 1) / tiles + tile_step - 1) / tile_step * tile_step; }

}  // namespace

i64 blas_tiles(i64 m, i64 n, i64 k) {
  const i64 longer = std::max(m, n), length = m >= n ? tile_rows : tile_columns;
  if (m * n * k < one_tile_work || longer <= tile_step) return 1;
  i64 tiles = least_tiles;
  while (tiles < most_tiles && longer / (2 * tiles) >= length) tiles *= 2;
  const i64 rounded = tile_length(longer, tiles);
  return (longer + rounded - 1) / rounded;
}

template <class T>
void blas_product(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
                  const TileWork& finish) {
  guard_blas();
  const i64 m = c.rows, n = c.cols, k = inner_size(a, trans), longer = std::max(m, n);
  const i64 tiles = blas_tiles(m, n, k), length = tile_length(longer, tiles);
  const bool add = accumulate || fill;
  parallel_tasks(tiles, [&](i64 i) {
    const i64 begin = i * length, end = std::min(longer, begin + length);
    const Tile tile = m >= n ? Tile{begin, end, 0, n} : Tile{0, m, begin, end};
    if (fill) fill(tile);
    if (k > 0) {
      const BlasThreads one(1);
      single_product<T>(rows_of(a, transposes_a(trans), tile.row, tile.row_end),
                        columns_of(b, transposes_b(trans), tile.column, tile.column_end), part_of(c, tile), trans, add);
    } else if (!add) {
      set_to_zero(part_of(c, tile));
    }
    if (finish) finish(tile);
  });
}

template <class T> void gemm_by_blas(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans) {
  guard_blas();
  const BlasThreads all(threads());
  if (c.rows > 0 && c.cols > 0 && inner_size(a, trans) > 0) single_product(a, b, c, trans, false);
}

template <class T>
void blas_batch(i64 count, const MatBatch<const T>& a, const MatBatch<const T>& b, const MatBatch<T>& c, Trans trans,
                bool accumulate) {
  guard_blas();
  const i64 k = inner_size(a.first, trans);
  parallel_tasks(count, [&](i64 i) {
    if (k > 0) {
      const BlasThreads one(1);
      single_product(a[i], b[i], c[i], trans, accumulate);
    } else if (!accumulate) {
      set_to_zero(c[i]);
    }
  });
}

template void blas_product(Mat<const float>, Mat<const float>, Mat<float>, Trans, bool, const TileWork&,
                           const TileWork&);
template void blas_product(Mat<const double>, Mat<const double>, Mat<double>, Trans, bool, const TileWork&,
                           const TileWork&);
template void gemm_by_blas(Mat<const float>, Mat<const float>, Mat<float>, Trans);
template void gemm_by_blas(Mat<const double>, Mat<const double>, Mat<double>, Trans);
template void blas_batch(i64, const MatBatch<const float>&, const MatBatch<const float>&, const MatBatch<float>&, Trans,
                         bool);
template void blas_batch(i64, const MatBatch<const double>&, const MatBatch<const double>&, const MatBatch<double>&,
                         Trans, bool);

}  // namespace orrery::kernels

namespace orrery {

namespace {

struct Kernel {
  std::string_view name;
  VectorLevel level;
};
// OpenBLAS's kernels for x86 (its file TargetList.txt).
constexpr Kernel x86_kernels[] = {
    {"Prescott", VectorLevel::baseline},   {"Core2", VectorLevel::baseline},    {"Penryn", VectorLevel::baseline},
    {"Dunnington", VectorLevel::baseline}, {"Nehalem", VectorLevel::baseline},  {"Atom", VectorLevel::baseline},
    {"Athlon", VectorLevel::baseline},     {"Opteron", VectorLevel::baseline},  {"Barcelona", VectorLevel::baseline},
    {"Bobcat", VectorLevel::baseline},     {"Nano", VectorLevel::baseline},     {"Sandybridge", VectorLevel::avx},
    {"Bulldozer", VectorLevel::avx},       {"Piledriver", VectorLevel::avx},    {"Steamroller", VectorLevel::avx},
    {"Haswell", VectorLevel::avx2},        {"Zen", VectorLevel::avx2},          {"Excavator", VectorLevel::avx2},
    {"SkylakeX", VectorLevel::avx512},     {"Cooperlake", VectorLevel::avx512}, {"SapphireRapids", VectorLevel::avx512},
    {"Generic", VectorLevel::baseline},
};

}  // namespace

bool same_word(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) { return (x | 0x20) == (y | 0x20); };  // the bit of small letters in ASCII
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
}

std::optional<VectorLevel> kernel_vector_level(std::string_view kernel) {
  for (const Kernel& known : x86_kernels)
    if (same_word(known.name, kernel)) return known.level;
  return std::nullopt;
}

bool has_narrow_vectors(const BlasInfo& blas, VectorLevel level) {
  const std::optional<VectorLevel> kernel = kernel_vector_level(blas.kernel);
  return kernel && *kernel < level;
}

BlasAction blas_action(int openblas_parallel, int threads) {
  switch (openblas_parallel) {
    case 0: return threads > 1 ? BlasAction::refuse : BlasAction::nothing;  // built without threads
    case 1: return BlasAction::single_thread;                               // its own thread pool
    default:
      return BlasAction::nothing;  // OpenMP: openblas_set_num_threads(1) would set OpenMP to one thread everywhere
  }
}

void guard_blas() {
  // Checked for every product, since the number of threads may have grown; OpenBLAS's answer never changes. Inside a
  // parallel region of the host program, that program's other threads may call OpenBLAS too.
  static const int parallel = openblas_get_parallel();
  const int callers = std::max(threads(), omp_get_num_threads());
  switch (blas_action(parallel, callers)) {
    case BlasAction::refuse:
      fail("blas", "this OpenBLAS was built without threads and gives wrong products when ", callers,
           " threads call it; install libopenblas0-openmp (or libopenblas0-pthread), or run with --threads 1");
    case BlasAction::single_thread: {
      [[maybe_unused]] static const bool once = [] {
        openblas_set_num_threads(1);
        return true;
      }();
      break;
    }
    case BlasAction::nothing: break;
  }
}

BlasInfo blas_info() {
  BlasInfo info{.kernel = openblas_get_corename(), .config = openblas_get_config(), .threading = "OpenMP"};
  if (openblas_get_parallel() == 0) info.threading = "none";
  if (openblas_get_parallel() == 1) info.threading = "pthreads";
  return info;
}

}  // namespace orrery
