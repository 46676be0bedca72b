// Chapter 8. Products that read A in place: every form against a triple loop, tiles that cover C once, and bits that
// depend neither on the threads nor on the tiles.
#include "core/products/unpacked_product.h"

#include <doctest/doctest.h>

#include <array>

#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "tests/core/products.h"

using namespace orrery;
using namespace orrery::kernels;

namespace {

struct UnpackedShape {
  i64 m, n, k;
  Trans trans;
};

// More rows than columns and the other way round, several tiles, sizes that no block divides.
constexpr std::array unpacked_shapes{
    UnpackedShape{64, 1, 1, Trans::none},     UnpackedShape{451, 37, 129, Trans::none},
    UnpackedShape{67, 1030, 61, Trans::none}, UnpackedShape{66, 130, 2300, Trans::none},
    UnpackedShape{512, 7, 5, Trans::b},       UnpackedShape{801, 66, 77, Trans::b},
    UnpackedShape{1, 1, 64, Trans::a},        UnpackedShape{130, 70, 301, Trans::a},
    UnpackedShape{65, 1100, 150, Trans::a},
};

Tensor unpacked(const UnpackedShape& s, const Tensor& a, const Tensor& b, const TileWork& fill = nullptr,
                const TileWork& finish = nullptr, Tensor c = {}) {
  if (!c.defined()) c = full({s.m, s.n}, 7.0);  // what stands there must not matter
  unpacked_product<float>({a.data<float>(), a.size(0), a.size(1)}, {b.data<float>(), b.size(0), b.size(1)},
                          {c.write<float>(), s.m, s.n}, s.trans, false, fill, finish);
  return c;
}

std::array<Tensor, 2> unpacked_factors(const UnpackedShape& s, u64 seed) {
  Rng rng(seed);
  return {randn(transposes_a(s.trans) ? Shape{s.k, s.m} : Shape{s.m, s.k}, rng),
          randn(transposes_b(s.trans) ? Shape{s.n, s.k} : Shape{s.k, s.n}, rng)};
}

}  // namespace

TEST_CASE("unpacked products agree with a triple loop, with gaps between rows, written and added") {
  Rng rng(7);
  for (const UnpackedShape& s : unpacked_shapes) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    CHECK(runs_unpacked(s.m, s.n, s.k, s.trans));
    for (const bool accumulate : {false, true}) {
      const products::Case padded{1, s.m, s.n, s.k, 3, 2, 5, s.trans, accumulate};
      CHECK(products::error_of_case<float>(padded, rng, false) <= 4e-6 * std::sqrt(static_cast<double>(s.k)));
      CHECK(products::error_of_case<double>(padded, rng, false) <= 4e-15 * std::sqrt(static_cast<double>(s.k)));
    }
  }
}

TEST_CASE("the shape decides which products run unpacked") {
  CHECK(runs_unpacked(64, 1000, 2048, Trans::none));
  CHECK(!runs_unpacked(63, 1000, 2048, Trans::none));
  CHECK(!runs_unpacked(64, 257, 2049, Trans::none));
  CHECK(runs_unpacked(64, 256, 2049, Trans::none));
  CHECK(runs_unpacked(512, 10, 512, Trans::b));
  CHECK(!runs_unpacked(511, 10, 512, Trans::b));
  CHECK(!runs_unpacked(512, 10, 513, Trans::b));
  CHECK(runs_unpacked(1024, 5000, 64, Trans::a));
  CHECK(!runs_unpacked(1025, 5000, 64, Trans::a));
  CHECK(!runs_unpacked(1024, 5000, 63, Trans::a));
  CHECK(!runs_unpacked(512, 512, 512, Trans::both));
}

TEST_CASE("tiles of an unpacked product are filled, finished, and cover C once") {
  for (const UnpackedShape& s : unpacked_shapes) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    const auto [a, b] = unpacked_factors(s, 8);
    const Tensor plain = unpacked(s, a, b);
    Tensor c = full({s.m, s.n}, 5.0);
    float* to = c.write<float>();
    const auto each = [=, n = s.n](const Tile& tile, float factor, float summand) {
      for (i64 i = tile.row; i < tile.row_end; ++i)
        for (i64 j = tile.column; j < tile.column_end; ++j) to[i * n + j] = to[i * n + j] * factor + summand;
    };
    unpacked(
        s, a, b, [=](const Tile& tile) { each(tile, 0, 2); }, [=](const Tile& tile) { each(tile, 3, 1); }, c);
    double worst = 0;
    for (i64 i = 0; i < c.count(); ++i) worst = small::worse(worst, std::abs(c.at(i) - ((plain.at(i) + 2) * 3 + 1)));
    CHECK(worst < 1e-3);
  }
}

TEST_CASE("an unpacked product's bits depend neither on the threads nor on the tiles") {
  for (const UnpackedShape& s : unpacked_shapes) {
    CAPTURE(s.m);
    CAPTURE(s.n);
    const auto [a, b] = unpacked_factors(s, 9);
    Tensor one;
    for (const int count : {1, 2, 3, 8}) {
      const small::Threads scope(count);
      const products::LeastTiles tiles(count);
      const Tensor c = unpacked(s, a, b);
      if (count == 1) one = c;
      CHECK(same_bits(c, one));
    }
  }
}
