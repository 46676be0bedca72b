// Chapter 8. Packed products: every form against a triple loop, in shapes that no block divides, and
// the bits of unpacked ones, whatever the threads and the tiles.
#include "core/products/packed_product.h"

#include <doctest/doctest.h>
#include <pthread.h>

#include <array>
#include <functional>

#include "core/products/unpacked_product.h"
#include "core/tensor_ops.h"
#include "tests/core/products.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::products;

namespace {

struct PackedShape {
  i64 m, n, k;
};

// Few and many rows, columns and inner numbers; deeper than one panel, and more rows than one block of A.
constexpr std::array packed_shapes{PackedShape{1, 1, 1},   PackedShape{1, 700, 300},  PackedShape{17, 5, 513},
                                   PackedShape{7, 130, 2}, PackedShape{801, 67, 259}, PackedShape{65, 1100, 33},
                                   PackedShape{5, 3, 0},   PackedShape{0, 4, 4}};

template <class T>
double error_of_packed(const PackedShape& s, Trans trans, bool accumulate, bool batched) {
  Rng rng(7);
  const Case one{3, s.m, s.n, s.k, 3, 2, 5, trans, accumulate};
  return error_of_multiply<T>(one, rng, batched, [&](const auto& a, const auto& b, const auto& c) {
    if (batched)
      packed_batch<T>(one.batch, a, b, c, trans, accumulate);
    else
      packed_product<T>(a.first, b.first, c.first, trans, accumulate, nullptr, nullptr);
  });
}

Tensor packed(Trans trans, const Tensor& a, const Tensor& b, const TileWork& fill = nullptr,
              const TileWork& finish = nullptr, Tensor c = {}) {
  const i64 m = a.size(transposes_a(trans) ? 1 : 0), n = b.size(transposes_b(trans) ? 0 : 1);
  if (!c.defined()) c = full({m, n}, std::nan(""));  // what stands there must not matter
  packed_product<float>({a.data<float>(), a.size(0), a.size(1)}, {b.data<float>(), b.size(0), b.size(1)},
                        {c.write<float>(), m, n}, trans, false, fill, finish);
  return c;
}

}  // namespace

TEST_CASE("packed products of any shape agree with a triple loop, one by one and in batches, written and added") {
  for (const PackedShape& s : packed_shapes)
    for (const Trans trans : every_trans)
      for (const bool flag : {false, true}) {
        CAPTURE(s.m);
        CAPTURE(s.n);
        CAPTURE(static_cast<int>(trans));
        const double root = std::sqrt(static_cast<double>(s.k + 1));
        CHECK(error_of_packed<float>(s, trans, flag, !flag) <= 2e-6 * root);
        CHECK(error_of_packed<double>(s, trans, flag, flag) <= 1e-14 * root);
      }
}

TEST_CASE("promise 5: a packed product has the bits of an unpacked one, for any number of threads and tiles") {
  Rng rng(9);
  const Tensor a = randn({467, 600}, rng), a_t = permute(a, {1, 0}), b = randn({600, 203}, rng),
               b_t = permute(b, {1, 0});
  Tensor expected = Tensor::empty({467, 203});
  unpacked_product<float>({a.data<float>(), 467, 600}, {b.data<float>(), 600, 203}, {expected.write<float>(), 467, 203},
                          Trans::none, false, nullptr, nullptr);
  for (const int count : {1, 2, 3, 8}) {
    const small::Threads scope(count);
    const LeastTiles tiles(count);
    CHECK(packed_tiles(467, 203) >= count);
    for (const Trans trans : every_trans)
      CHECK(same_bits(packed(trans, transposes_a(trans) ? a_t : a, transposes_b(trans) ? b_t : b), expected));
  }
}

TEST_CASE("tiles of a packed product are filled, finished, and cover C once") {
  Rng rng(8);
  for (const auto& [m, n] : {std::pair<i64, i64>{451, 37}, {37, 1030}}) {
    const Tensor a = randn({m, 19}, rng), b = randn({19, n}, rng), plain = packed(Trans::none, a, b);
    Tensor c = full({m, n}, 5.0);
    float* to = c.write<float>();
    const auto each = [=, n = n](const Tile& tile, float factor, float summand) {
      for (i64 i = tile.row; i < tile.row_end; ++i)
        for (i64 j = tile.column; j < tile.column_end; ++j) to[i * n + j] = to[i * n + j] * factor + summand;
    };
    packed(
        Trans::none, a, b, [=](const Tile& tile) { each(tile, 0, 2); }, [=](const Tile& tile) { each(tile, 3, 1); }, c);
    double worst = 0;
    for (i64 i = 0; i < c.count(); ++i) worst = small::worse(worst, std::abs(c.at(i) - ((plain.at(i) + 2) * 3 + 1)));
    CHECK(worst < 1e-3);
  }
}

TEST_CASE("packed products need little of a thread's stack") {
  if (!small::counts_memory()) return;  // AddressSanitizer needs more
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);  // the packed block of A alone is larger
  Rng rng(1);
  const Tensor a = randn({500, 300}, rng), b = randn({300, 70}, rng);
  Tensor c;
  std::function<void()> work = [&] { c = packed(Trans::none, a, b); };
  pthread_t thread;
  const auto run = [](void* f) -> void* {
    (*static_cast<std::function<void()>*>(f))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, run, &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  CHECK(same_bits(c, packed(Trans::none, a, b)));
}
