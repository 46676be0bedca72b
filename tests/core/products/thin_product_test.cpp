// Chapter 8. Products with few rows against loops, with work on tiles, and the same bits for any number of threads.
#include "core/products/thin_product.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>

#include "autograd/check/scheduling.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;

namespace {

template <class T>
Tensor product(const Tensor& x, const Tensor& W, const TileWork& fill = nullptr, const TileWork& finish = nullptr,
               Tensor c = {}) {
  const i64 m = x.size(0), k = x.size(1), n = W.size(0);
  if (!c.defined()) c = full({m, n}, 7.0, x.dtype());  // what stands there must not matter
  thin_product<T>({x.data<T>(), m, k}, {W.data<T>(), n, k}, {c.write<T>(), m, n}, false, fill, finish);
  return c;
}

// The largest distance from the sum in double, in parts of the sum of sizes.
double worst_error(const Tensor& x, const Tensor& W, const Tensor& c) {
  const i64 m = x.size(0), k = x.size(1), n = W.size(0);
  double worst = 0;
  for (i64 i = 0; i < m; ++i) {
    for (i64 j = 0; j < n; ++j) {
      double sum = 0, size = 1e-300;
      for (i64 p = 0; p < k; ++p) {
        const double term = x.at(i * k + p) * W.at(j * k + p);
        sum += term;
        size += std::abs(term);
      }
      worst = small::worse(worst, std::abs(c.at(i * n + j) - sum) / size);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("every number of rows, columns and inner sizes, odd ones too") {
  Rng rng(1);
  for (const i64 m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    for (const i64 n : {1, 3, 12, 13, 130}) {
      for (const i64 k : {0, 1, 15, 16, 17, 64, 100}) {
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        const Tensor x = randn({m, k}, rng), W = randn({n, k}, rng);
        CHECK(worst_error(x, W, product<float>(x, W)) < 1e-6);
        const Tensor x64 = x.to(f64), W64 = W.to(f64);
        CHECK(worst_error(x64, W64, product<double>(x64, W64)) < 1e-15);
      }
    }
  }
}

TEST_CASE("tiles are filled, finished, and cover the result once") {
  Rng rng(2);
  const i64 m = 3, n = 1000, k = 70;
  const Tensor x = randn({m, k}, rng), W = randn({n, k}, rng), plain = product<float>(x, W);
  Tensor c = full({m, n}, 5.0);
  float* to = c.write<float>();
  const auto each = [=](const Tile& tile, float factor, float summand) {
    for (i64 i = tile.row; i < tile.row_end; ++i)
      for (i64 j = tile.column; j < tile.column_end; ++j) to[i * n + j] = to[i * n + j] * factor + summand;
  };
  product<float>(
      x, W, [=](const Tile& tile) { each(tile, 0, 2); }, [=](const Tile& tile) { each(tile, 3, 1); }, c);
  double worst = 0;
  for (i64 i = 0; i < m * n; ++i) worst = small::worse(worst, std::abs(c.at(i) - ((plain.at(i) + 2) * 3 + 1)));
  CHECK(worst < 1e-4);
}

TEST_CASE("tiles are as many as announced, and begin where whole blocks of decisions do") {
  for (const auto& [n, k] : {std::pair<i64, i64>{1, 5}, {900, 300}, {1001, 17}, {4096, 512}}) {
    const Tensor x = full({2, k}, 1.0), W = full({n, k}, 1.0);
    std::atomic<i64> tiles = 0, wrong = 0;
    product<float>(x, W, nullptr, [&](const Tile& tile) {
      ++tiles;
      wrong += tile.column % thin_tile_step != 0;
    });
    CHECK(tiles == thin_tiles(n, k));
    CHECK(wrong == 0);
    const GrainScope smallest(1);
    product<float>(x, W, nullptr, [&](const Tile& tile) { wrong += tile.column % thin_tile_step != 0; });
    CHECK(wrong == 0);
  }
}

TEST_CASE("a number's bits depend on its two rows alone") {
  Rng rng(3);
  const Tensor x = randn({13, 300}, rng), W = randn({900, 300}, rng);
  CHECK(small::same_for_any_threads([&] { return product<float>(x, W); }));
  const auto check_alone = [&]<class T>(T) {
    const Tensor rows_x = x.to(dtype_of<T>), rows_W = W.to(dtype_of<T>), all = product<T>(rows_x, rows_W);
    for (i64 i = 0; i < x.size(0); ++i) {
      for (const auto& [begin, end] : {std::pair<i64, i64>{0, 1}, {3, 6}, {100, 500}, {895, 900}}) {
        const Tensor part = product<T>(rows_x.rows(i, i + 1), rows_W.rows(begin, end));
        REQUIRE(same_bits(part, slice(all, 1, begin, end).rows(i, i + 1)));
      }
    }
  };
  check_alone(float{});
  check_alone(double{});
}
