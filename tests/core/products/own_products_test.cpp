// Chapter 8. The library's own products, thin, packed and small, against a triple loop and BLAS: shapes that no block
// divides, tiles that cover C once, bits that depend neither on the threads nor on the tiles.
#include <doctest/doctest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <functional>

#include "autograd/check/scheduling.h"
#include "core/products/blas.h"
#include "core/products/packed_product.h"
#include "core/products/small_product.h"
#include "core/products/thin_product.h"
#include "core/products/transpose.h"
#include "core/tensor_ops.h"
#include "tests/core/products.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::products;

namespace {

struct OwnShape {
  i64 m, n, k;
  Trans trans;
};

template <class T>
using OwnProduct = std::function<void(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate,
                                      const TileWork& fill, const TileWork& finish)>;
template <class T>
void thin(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans, bool accumulate, const TileWork& fill,
          const TileWork& finish) {
  thin_product<T>(a, b, c, accumulate, fill, finish);
}

template <class T>
void in_blocks(Mat<const T> a, Mat<const T> b, Mat<T> c, Trans trans, bool accumulate, const TileWork& fill,
               const TileWork& finish) {
  packed_product<T>(a, b, c, trans, accumulate, fill, finish);
}

// One way to compute products, with shapes that go this way.
struct OwnWay {
  std::string name;
  double tolerance;  // of f32
  OwnProduct<float> single;
  OwnProduct<double> exact;
  std::vector<OwnShape> shapes;
};

std::vector<OwnWay> own_ways() {
  std::vector<OwnShape> few_rows{{3, 1000, 70, Trans::b}}, packed;
  for (const i64 m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16})
    for (const i64 n : {1, 3, 12, 13, 130})
      for (const i64 k : {0, 1, 15, 16, 17, 64, 100}) few_rows.push_back({m, n, k, Trans::b});
  // Few and many rows, columns and inner numbers; A in place and packed; few rows with a B that two threads read once,
  // and three by strips; more rows than a block of A has.
  for (const auto& [m, n, k] : {std::array<i64, 3>{1, 1, 1},
                                {1, 700, 300},
                                {17, 5, 513},
                                {7, 130, 2},
                                {11, 700, 100},
                                {801, 67, 259},
                                {65, 1100, 33},
                                {65, 1100, 300},
                                {5, 3, 0},
                                {0, 4, 4}})
    for (const Trans trans : every_trans)
      if (m < 400 || trans == Trans::none) packed.push_back({m, n, k, trans});  // other large ones: promise 5 below
  return {{"thin", 2e-6, thin<float>, thin<double>, few_rows},
          {"packed", 4e-6, in_blocks<float>, in_blocks<double>, packed}};
}

template <class T>
void check_product(const OwnProduct<T>& product, const OwnShape& s, bool accumulate, double tolerance) {
  Rng rng(7);
  const Case padded{1, s.m, s.n, s.k, 3, 2, 5, s.trans, accumulate};
  const double error = error_of_multiply<T>(padded, rng, false, [&](const auto& a, const auto& b, const auto& c) {
    product(a.first, b.first, c.first, s.trans, accumulate, nullptr, nullptr);
  });
  CHECK(error <= tolerance * std::sqrt(static_cast<double>(s.k + 1)));
}

std::array<Tensor, 2> factors(const OwnShape& s) {
  Rng rng(8);
  return {randn(transposes_a(s.trans) ? Shape{s.k, s.m} : Shape{s.m, s.k}, rng),
          randn(transposes_b(s.trans) ? Shape{s.n, s.k} : Shape{s.k, s.n}, rng)};
}

Tensor product_of(const OwnWay& way, const OwnShape& s, const TileWork& fill = nullptr,
                  const TileWork& finish = nullptr, Tensor c = {}) {
  const auto [a, b] = factors(s);
  if (!c.defined()) c = full({s.m, s.n}, std::nan(""));  // what stands there must not matter
  way.single({a.data<float>(), a.size(0), a.size(1)}, {b.data<float>(), b.size(0), b.size(1)},
             {c.write<float>(), s.m, s.n}, s.trans, false, fill, finish);
  return c;
}

}  // namespace

TEST_CASE("own products agree with a triple loop, with gaps between rows, written and added") {
  for (const OwnWay& way : own_ways()) {
    for (const OwnShape& s : way.shapes) {
      INFO(way.name, " ", s.m, " ", s.n, " ", s.k, " ", static_cast<int>(s.trans));
      check_product<float>(way.single, s, false, way.tolerance);
      if (s.m * s.n * s.k > 1'000'000) continue;  // the triple loop is slow
      check_product<float>(way.single, s, true, way.tolerance);
      for (const bool accumulate : {false, true}) check_product<double>(way.exact, s, accumulate, 1e-14);
      if (way.name != "packed") continue;
      for (const bool accumulate : {false, true}) {
        Rng rng(7);
        const Case batch{3, s.m, s.n, s.k, 3, 2, 5, s.trans, accumulate};
        CHECK(error_of_multiply<float>(batch, rng, true, [&](const auto& a, const auto& b, const auto& c) {
                packed_batch<float>(3, a, b, c, s.trans, accumulate);
              }) <= way.tolerance * std::sqrt(static_cast<double>(s.k + 1)));
      }
    }
  }
}

TEST_CASE("tiles of own products are filled, finished, and cover C once; bits do not depend on threads or tiles") {
  for (const OwnWay& way : own_ways()) {
    for (const OwnShape& s : way.shapes) {
      if (s.m * s.n < 1000) continue;
      INFO(way.name, " ", s.m, " ", s.n, " ", s.k, " ", static_cast<int>(s.trans));
      const Tensor plain = product_of(way, s);
      Tensor c = full({s.m, s.n}, 5.0);
      float* to = c.write<float>();
      const auto each = [=, n = s.n](const Tile& tile, float factor, float summand) {
        for (i64 i = tile.row; i < tile.row_end; ++i)
          for (i64 j = tile.column; j < tile.column_end; ++j) to[i * n + j] = to[i * n + j] * factor + summand;
      };
      product_of(
          way, s, [=](const Tile& tile) { each(tile, 0, 2); }, [=](const Tile& tile) { each(tile, 3, 1); }, c);
      double worst = 0;
      for (i64 i = 0; i < c.count(); ++i) worst = small::worse(worst, std::abs(c.at(i) - ((plain.at(i) + 2) * 3 + 1)));
      CHECK(worst < 1e-3);
      for (const int count : {2, 3, 8}) {
        const small::Threads scope(count);
        CHECK(same_bits(product_of(way, s), plain));
      }
    }
  }
}

TEST_CASE("promise 5: a packed product has the bits of a small one, for any number of threads, in blocks of any size") {
  const OwnShape s{1467, 700, 1100, Trans::none};  // several blocks of rows, and of the inner size
  const auto [a, b] = factors(s);
  Tensor expected = Tensor::empty({s.m, s.n});
  small_product<float>({a.data<float>(), s.k, 1}, {b.data<float>(), s.k, s.n}, {expected.write<float>(), s.m, s.n},
                       false);
  const Tensor a_t = permute(a, {1, 0}), b_t = permute(b, {1, 0});
  for (const int count : {1, 2, 3, 4, 8}) {
    const small::Threads scope(count);
    CHECK(packed_tiles(s.m, s.n, s.k) == count);
    for (const Trans trans : every_trans) {
      const Tensor &left = transposes_a(trans) ? a_t : a, &right = transposes_b(trans) ? b_t : b;
      Tensor c = Tensor::empty({s.m, s.n});
      packed_product<float>({left.data<float>(), left.size(0), left.size(1)},
                            {right.data<float>(), right.size(0), right.size(1)}, {c.write<float>(), s.m, s.n}, trans,
                            false, nullptr, nullptr);
      CHECK(same_bits(c, expected));
    }
  }
}

TEST_CASE("C is cut into a grid of tiles of equal work, at the borders of blocks") {
  // Threads, m, n, and the tiles along each side.
  for (const auto& [count, m, n, down, across] : {std::array<i64, 5>{1, 500, 500, 1, 1},
                                                  {2, 1024, 512, 2, 1},
                                                  {2, 512, 1024, 1, 2},
                                                  {2, 100, 5000, 1, 2},
                                                  {2, 5000, 20, 2, 1},
                                                  {4, 768, 768, 2, 2},
                                                  {8, 768, 768, 4, 2},
                                                  {8, 768, 6144, 1, 8},
                                                  {6, 1536, 768, 2, 3},
                                                  {16, 3072, 768, 8, 2},
                                                  {7, 700, 700, 7, 1}}) {
    const Shape sizes{count, m, n};
    CAPTURE(sizes);
    const small::Threads scope(static_cast<int>(count));
    std::vector<Tile> tiles(static_cast<size_t>(packed_tiles(m, n, 8)));
    REQUIRE(static_cast<i64>(tiles.size()) == down * across);
    std::atomic<size_t> found = 0;
    const auto note = [&](const Tile& tile) { tiles.at(found++) = tile; };
    const Tensor a = full({m, 8}, 1.0), b = full({8, n}, 1.0);
    Tensor c = Tensor::empty({m, n});
    packed_product<float>({a.data<float>(), m, 8}, {b.data<float>(), 8, n}, {c.write<float>(), m, n}, Trans::none,
                          false, nullptr, note);
    i64 area = 0, largest = 0, ragged = 0, in_first_row = 0;
    for (const Tile& tile : tiles) {
      const i64 size = (tile.row_end - tile.row) * (tile.column_end - tile.column);
      area += size;
      largest = std::max(largest, size);
      in_first_row += tile.row == 0;
      ragged += tile.row % block_rows + tile.column % 16 +
                (tile.column_end == n ? 0 : (tile.column_end - tile.column) % strip_width<float>);
    }
    CHECK(in_first_row == across);
    CHECK(area == m * n);
    CHECK(ragged == 0);
    CHECK(static_cast<double>(largest * count) <= 1.1 * static_cast<double>(m * n));
  }
}

TEST_CASE("blocks follow from the sizes of caches, of any CPU") {
  const auto blocks = [](i64 first, i64 second, i64 strip_bytes) {
    const Blocking found = blocking_for({first << 10, second << 10}, strip_bytes);
    CHECK(found.depth >= 256);
    CHECK(found.depth <= 512);
    CHECK(found.block_bytes <= second << 10);
    return std::array<i64, 2>{found.depth, found.block_bytes >> 10};
  };
  using Sizes = std::array<i64, 2>;
  CHECK(blocks(32, 512, 64) == Sizes{512, 256});     // AVX2: 16 columns of f32
  CHECK(blocks(32, 512, 32) == Sizes{512, 256});     // 8 columns, or 16 of bf16
  CHECK(blocks(32, 1024, 256) == Sizes{256, 512});   // AVX-512: 64 columns
  CHECK(blocks(48, 2048, 128) == Sizes{384, 1024});  // 32 columns
  CHECK(blocks(128, 12288, 64) == Sizes{512, 1024});
  CHECK(blocks(16, 64, 64) == Sizes{256, 64});
  const CacheSizes unknown;
  CHECK(blocks(unknown.first >> 10, unknown.second >> 10, 64) == Sizes{512, 256});
}

namespace {

// The largest difference between packed_product and BLAS's, divided by sqrt(k + 1). The rows of all matrices are one
// number longer than they need to be, and everything beyond is NaN.
template <class T> double difference_to_blas(const OwnShape& s, bool accumulate) {
  Rng rng(11);
  const Case c{1, s.m, s.n, s.k, 1, 1, 1, s.trans, accumulate};
  const auto matrix = [&](i64 rows, i64 cols) {
    std::vector<T> x(static_cast<size_t>(rows * (cols + 1)) + 1, std::numeric_limits<T>::quiet_NaN());
    for (i64 i = 0; i < rows; ++i)
      for (i64 j = 0; j < cols; ++j) x[static_cast<size_t>(i * (cols + 1) + j)] = static_cast<T>(rng.uniform() - 0.5);
    return x;
  };
  const std::vector<T> a = matrix(c.a_rows(), c.a_cols()), b = matrix(c.b_rows(), c.b_cols());
  std::vector<T> own = matrix(s.m, s.n), blas = own;
  const Mat<const T> A{a.data(), c.a_rows(), c.a_cols(), c.a_cols() + 1},
      B{b.data(), c.b_rows(), c.b_cols(), c.b_cols() + 1};
  packed_product<T>(A, B, {own.data(), s.m, s.n, s.n + 1}, s.trans, accumulate, nullptr, nullptr);
  blas_product<T>(A, B, {blas.data(), s.m, s.n, s.n + 1}, s.trans, accumulate, nullptr, nullptr);
  double worst = 0;
  for (size_t i = 0; i < own.size(); ++i)
    if (std::isnan(own[i]) != std::isnan(blas[i]))
      worst = std::numeric_limits<double>::infinity();
    else if (!std::isnan(own[i]))
      worst = small::worse(worst, std::abs(static_cast<double>(own[i]) - static_cast<double>(blas[i])));
  return worst / std::sqrt(static_cast<double>(s.k + 1));
}

}  // namespace

TEST_CASE(
    "packed products agree with BLAS for every remainder of rows, columns and inner size, and read no neighbour") {
  const small::Threads one(1);  // the next threads would wait for one another much longer than they compute
  const auto check = [](const OwnShape& s, bool accumulate) {
    INFO(s.m, " ", s.n, " ", s.k, " ", static_cast<int>(s.trans), " ", accumulate);
    CHECK(difference_to_blas<float>(s, accumulate) <= 2e-6);
    CHECK(difference_to_blas<double>(s, accumulate) <= 1e-14);
  };
  for (const Trans trans : every_trans) {
    for (const bool accumulate : {false, true}) {
      for (i64 m = 17; m <= 29; ++m) check({m, 257, 129, trans}, accumulate);  // A is packed
      for (i64 n = 257; n <= 257 + 64; ++n) check({18, n, 129, trans}, accumulate);
      for (i64 k = 129; k <= 129 + 17; ++k) check({18, 257, k, trans}, accumulate);
      for (i64 rest = 1; rest <= 33; ++rest) check({20, rest, 35 - rest, trans}, accumulate);  // A is in place
    }
  }
}

TEST_CASE("packed products need little of a thread's stack") {
  if (!small::counts_memory()) return;  // AddressSanitizer needs more
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);  // the packed block of A alone is larger
  const OwnWay packed = own_ways()[1];
  const OwnShape s{500, 270, 300, Trans::none};
  Tensor c;
  std::function<void()> work = [&] { c = product_of(packed, s); };
  pthread_t thread;
  const auto run = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  CHECK(same_bits(c, product_of(packed, s)));
}

TEST_CASE("tiles of thin products are as many as announced, and begin where whole blocks of decisions do") {
  for (const auto& [n, k] : {std::pair<i64, i64>{1, 5}, {900, 300}, {1001, 17}, {4096, 512}}) {
    const OwnShape s{2, n, k, Trans::b};
    std::atomic<i64> tiles = 0, wrong = 0;
    const auto count = [&](const Tile& tile) {
      ++tiles;
      wrong += tile.column % thin_tile_step != 0;
    };
    product_of(own_ways()[0], s, nullptr, count);
    CHECK(tiles == thin_tiles(n, k));
    const GrainScope smallest(1);
    product_of(own_ways()[0], s, nullptr, count);
    CHECK(wrong == 0);
  }
}

TEST_CASE("small products agree with a triple loop, however many rows and columns are left over by the blocks") {
  Rng rng(4);
  const auto error = [&]<class T>(T, const Case& s) {
    return error_of_multiply<T>(s, rng, false, [&](const auto& a, const auto& b, const auto& c) {
      const i64 stride = s.a_cols() + s.extra_a;
      const Strided<T> left =
          transposes_a(s.trans) ? Strided<T>{a.first.data, 1, stride} : Strided<T>{a.first.data, stride, 1};
      small_product<T>(left, b.first, c.first, s.accumulate);
    });
  };
  for (i64 m = 0; m <= 14; ++m) {
    for (const i64 n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 47, 64, 71, 130}) {
      for (const i64 k : {0, 1, 19}) {
        INFO(m, " ", n, " ", k);
        for (const bool flag : {false, true}) {  // both as transposed and as accumulate
          const Trans trans = flag ? Trans::a : Trans::none, other = flag ? Trans::none : Trans::a;
          CHECK(error(float{}, {1, m, n, k, 3, 5, 2, trans, flag}) <= 1e-5);
          CHECK(error(double{}, {1, m, n, k, 3, 5, 2, other, flag}) <= 1e-14 * 20);
        }
      }
    }
  }
}

TEST_CASE("an element of a small product has the same bits in any block: those of its own row and column") {
  const auto check = [&]<class T>(T, i64 m, i64 n, i64 k) {
    Rng rng(5);
    const Tensor a = randn({m, k}, rng, dtype_of<T>), b = randn({k, n}, rng, dtype_of<T>);
    Tensor all = full({m, n}, 2.0, dtype_of<T>);
    small_product<T>({a.data<T>(), k, 1}, {b.data<T>(), k, n}, {all.write<T>(), m, n}, true);
    for (i64 at = 0; at < m * n; ++at) {
      T alone{2};
      small_product<T>({a.data<T>() + at / n * k, k, 1}, {b.data<T>() + at % n, k, 1, n}, {&alone, 1, 1}, true);
      REQUIRE(static_cast<double>(alone) == all.at(at));
    }
  };
  for (const i64 few : {1, 2, 3}) check(float{}, few, 300, 61);  // wide blocks
  check(double{}, 1, 150, 61);
  check(float{}, 13, 75, 61);
  check(double{}, 13, 75, 61);
  check(float{}, 70, 75, 300);
  check(double{}, 70, 75, 300);  // B is copied, 256 rows at a time
}

TEST_CASE(
    "a product of few rows that reads B once has the bits of a small one, with gaps between rows, and reads no more") {
  const auto check = []<class T>(T, i64 m, i64 n, i64 k, bool of_columns, bool accumulate) {
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(k);
    Rng rng(9);
    const i64 b_stride = n + 3, c_stride = n + 1;
    std::vector<T> a = random_values<T>(m * k + 1, rng), b = random_values<T>(k * b_stride + 1, rng);
    for (i64 p = 0; p < k; ++p) std::fill_n(b.begin() + p * b_stride + n, 3, std::numeric_limits<T>::quiet_NaN());
    std::vector<T> found(static_cast<size_t>(m * c_stride + 1), static_cast<T>(guard_value)), expected = found;
    const Strided<T> left = of_columns ? Strided<T>{a.data(), 1, m} : Strided<T>{a.data(), k, 1};
    few_rows_product<T>(left, {b.data(), k, n, b_stride}, {found.data(), m, n, c_stride}, accumulate);
    small_product<T>(left, {b.data(), k, n, b_stride}, {expected.data(), m, n, c_stride}, accumulate);
    CHECK(found == expected);
  };
  for (i64 m = 1; m <= 16; ++m)
    for (const i64 n : {1, 7, 8, 33, 300, 1300})
      for (const i64 k : {0, 1, 3, 4, 18})
        for (const bool flag : {false, true}) {
          check(float{}, m, n, k, flag, !flag);
          check(double{}, m, n, k, flag, flag);
        }
}

TEST_CASE("what stood in C before a small product does not matter unless it is added to") {
  const float a = 3, b = 5;
  for (const i64 k : {0, 1}) {
    float c = std::nanf("");
    small_product<float>({&a, 1, 1}, {&b, k, 1}, {&c, 1, 1}, false);
    CHECK(c == 15 * static_cast<float>(k));
    small_product<float>({&a, 1, 1}, {&b, k, 1}, {&c, 1, 1}, true);
    CHECK(c == 30 * static_cast<float>(k));
  }
}

TEST_CASE("a transpose has every number where it belongs, also that of a part of a matrix") {
  for (const Shape& shape : {Shape{0, 3}, {3, 0}, {1, 1}, {1, 40}, {40, 1}, {16, 16}, {37, 53}}) {
    CAPTURE(shape);
    const Tensor x = arange(shape.count()).to(f32).reshape(shape);
    Tensor y = full({shape[1], shape[0]}, -1.0);
    transpose(Mat<const float>(x.data<float>(), shape[0], shape[1]), y.write<float>());
    CHECK(same_bits(permute(x, {1, 0}), y));
  }
  const Tensor x = arange(6 * 8).to(f64).reshape({6, 8});
  Tensor y = full({3, 4}, -1.0, f64);
  transpose(Mat<const double>(x.data<double>() + 9, 4, 3, 8), y.write<double>());
  CHECK(same_bits(y, permute(slice(x.rows(1, 5), 1, 1, 4), {1, 0})));
}
