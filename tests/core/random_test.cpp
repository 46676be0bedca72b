// Chapter 8. Tests of random numbers: published answers, the generator's state, moments, and dropout's decisions.
#include "core/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

TEST_CASE("promise 16: Philox gives the known answers of Random123") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr u32 ones = 0xffffffff;
  CHECK(philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
        PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("promise 16: the 10,000th number is the one the C++26 standard names for std::philox4x32") {
  // Its default seed is the first key word; each block of four words has its number as counter.
  constexpr u32 default_seed = 20111115;
  constexpr u32 last = 10'000 - 1;
  CHECK(philox4x32({last / 4, 0, 0, 0}, {default_seed, 0})[last % 4] == 1955073260);
}

TEST_CASE("promise 16: a generator is its seed and its position") {
  Rng rng(42);
  std::vector<u64> drawn;
  for (int i = 0; i < 100; ++i) drawn.push_back(rng.bits64());
  CHECK(rng.seed() == 42);
  CHECK(rng.position() == 100);
  for (const u64 start : {0, 1, 37, 98}) {
    Rng resumed(42, start);
    for (u64 i = start; i < 100; ++i) CHECK(resumed.bits64() == drawn[i]);
  }
  Rng other(43);
  CHECK(other.bits64() != drawn[0]);
}

TEST_CASE("uniform numbers lie in [0, 1) and have the right moments") {
  Rng rng(7);
  const i64 n = 200'000;
  double sum = 0, squares = 0, lowest = 1, highest = 0;
  for (i64 i = 0; i < n; ++i) {
    const double u = rng.uniform();
    sum += u;
    squares += u * u;
    lowest = std::min(lowest, u);
    highest = std::max(highest, u);
  }
  CHECK(lowest >= 0.0);
  CHECK(lowest < 1e-4);
  CHECK(highest < 1.0);
  CHECK(highest > 1 - 1e-4);
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(squares / n - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / n));
}

TEST_CASE("normal numbers have mean 0, variance 1, fourth moment 3") {
  Rng rng(11);
  const i64 n = 200'000;
  double sum = 0, squares = 0, fourth = 0;
  bool finite = true;
  for (i64 i = 0; i < n; ++i) {
    const double x = rng.normal();
    finite = finite && std::isfinite(x);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  CHECK(finite);
  CHECK(std::abs(sum / n) < 5 / std::sqrt(n));
  CHECK(std::abs(squares / n - 1) < 5 * std::sqrt(2.0 / n));
  CHECK(std::abs(fourth / n - 3) < 5 * std::sqrt(96.0 / n));
}

TEST_CASE("integers fall into their range, each about equally often") {
  Rng rng(3);
  std::array<int, 5> counts{};
  const int n = 50'000;
  for (int i = 0; i < n; ++i) ++counts.at(static_cast<size_t>(rng.integer(-2, 3) + 2));
  for (const int count : counts) CHECK(std::abs(count - n / 5) < 5 * std::sqrt(n * 0.16));
  CHECK(rng.integer(9, 10) == 9);
  CHECK_NOTHROW(rng.integer(std::numeric_limits<i64>::min(), std::numeric_limits<i64>::max()));
  CHECK(error_of([&] { rng.integer(3, 3); }) == "integer: needs low < high, got 3 and 3");
}

TEST_CASE("a permutation has every number once, and each order equally often") {
  Rng rng(4);
  std::map<std::vector<i64>, int> found;
  for (int i = 0; i < 6000; ++i) ++found[rng.permutation(3)];
  CHECK(found.size() == 6);
  for (const auto& entry : found) CHECK(std::abs(entry.second - 1000) < 150);
  CHECK(rng.permutation(0).empty());
}

TEST_CASE("f32 and f64 tensors of equal state hold the same numbers") {
  Rng a(5), b(5);
  CHECK(same_bits(randn({3, 4}, a, f32), randn({3, 4}, b, f64).to(f32)));
  CHECK(a.position() == b.position());
}

TEST_CASE("dropout's decisions are Philox at (block, step, micro-batch, draw) under the seed") {
  const Draw draw{.seed = 0x299f31d0a4093822, .step = 0x85a308d3, .micro = 0x1319, .index = 0x03707344};
  // Block number 0x8a2e243f6a88: its upper 16 bits share a word with the micro-batch.
  const std::array<u16, 8> got = decisions(draw, 0x8a2e243f6a88);
  const PhiloxBlock low =
      philox4x32({0x243f6a88, 0x85a308d3, 0x1319u * 65536u + 0x8a2e, 0x03707344}, {0xa4093822, 0x299f31d0});
  CHECK(low == PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
  CHECK(got == std::array<u16, 8>{0xfe09, 0xd16c, 0xcceb, 0x94fd, 0xe420, 0x5001, 0x6ea1, 0x2412});
}

TEST_CASE("each part of a draw's name changes its decisions") {
  const Draw base{.seed = 1, .step = 2, .micro = 3, .index = 4};
  const auto first = decisions(base, 0);
  CHECK(decisions(base, 0) == first);
  CHECK(decisions(base, 1) != first);
  for (int part = 0; part < 5; ++part) {
    Draw other = base;
    if (part == 0) ++other.seed;
    if (part == 1) other.seed += u64{1} << 32;
    if (part == 2) ++other.step;
    if (part == 3) ++other.micro;
    if (part == 4) ++other.index;
    CHECK(decisions(other, 0) != first);
  }
}

TEST_CASE("a probability is rounded to 1/65536, and the scale follows the rounded one") {
  CHECK(keep_below(0.0) == 65536);
  CHECK(keep_below(1.0) == 0);
  CHECK(keep_below(0.5) == 32768);
  CHECK(keep_below(0.1) == 58982);
  CHECK(keep_scale(0.0) == 1.0);
  CHECK(keep_scale(0.5) == 2.0);
  CHECK(keep_scale(1.0) == 0.0);
  CHECK(keep_scale(0.1) == 65536.0 / 58982);
}

TEST_CASE("decisions keep the share of elements they should") {
  const Draw draw{.seed = 9, .step = 1, .micro = 0, .index = 2};
  for (const double p : {0.1, 0.5, 0.9}) {
    const u64 blocks = 20'000;
    i64 kept = 0;
    for (u64 block = 0; block < blocks; ++block) {
      for (const u16 bits : decisions(draw, block)) kept += bits < keep_below(p);
    }
    const double n = 8.0 * blocks;
    CHECK(std::abs(static_cast<double>(kept) - n * (1 - p)) < 5 * std::sqrt(n * p * (1 - p)));
  }
}

TEST_CASE("dropout's factors are its decisions, many at a time, from any block on") {
  const Draw draw{.seed = 0x299f31d0a4093822, .step = 7, .micro = 0xffff, .index = 0x03707344};
  const auto check = [&]<class T>(T) {
    // The last ranges pass from one upper half of the block number to the next.
    for (const i64 first : {i64{0}, i64{1}, i64{15}, i64{1000}, (i64{1} << 32) - 3, (i64{3} << 32) - 20}) {
      for (const i64 blocks : {0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 41, 48, 63, 64, 71}) {
        for (const double p : {0.0, 0.3, 1.0}) {
          std::vector<T> factors(static_cast<size_t>(blocks * decisions_per_block) + 1, T{-5});
          dropout_factors(draw, p, first, blocks, factors.data());
          for (i64 block = 0; block < blocks; ++block) {
            const std::array<u16, 8> bits = decisions(draw, static_cast<u64>(first + block));
            for (size_t i = 0; i < 8; ++i)
              REQUIRE(factors[static_cast<size_t>(block) * 8 + i] ==
                      (bits[i] < keep_below(p) ? static_cast<T>(keep_scale(p)) : T{0}));
          }
          REQUIRE(factors.back() == T{-5});
        }
      }
    }
  };
  check(float{});
  check(double{});
}

TEST_CASE("drop multiplies by dropout's factors, in place too, and writes nothing else") {
  const Draw draw{.seed = 7, .step = 3, .micro = 1, .index = 2};
  const auto check = [&]<class T>(T) {
    for (const i64 n : {0, 1, 7, 8, 9, 63, 64, 65, 127, 255, 256, 257, 263, 600})
      for (const double p : {1e-6, 0.3, 1 - 1e-6, 1.0})
        for (const i64 first : {i64{0}, (i64{1} << 32) - 3}) {
          std::vector<T> x(static_cast<size_t>(n) + 1, T{-5}), factors(static_cast<size_t>(8 * blocks_of_row(n)) + 1);
          for (i64 i = 0; i < n; ++i) x[static_cast<size_t>(i)] = static_cast<T>(i - 3);
          dropout_factors(draw, p, first, blocks_of_row(n), factors.data());
          std::vector<T> wanted = x, y = x;
          for (size_t i = 0; i < static_cast<size_t>(n); ++i) wanted[i] *= factors[i];
          drop(draw, p, first, n, x.data(), y.data());
          REQUIRE(y == wanted);
          drop(draw, p, first, n, x.data(), x.data());
          REQUIRE(x == wanted);
        }
  };
  check(float{});
  check(double{});
}

TEST_CASE("a row of decisions takes whole blocks") {
  CHECK(blocks_of_row(0) == 0);
  CHECK(blocks_of_row(1) == 1);
  CHECK(blocks_of_row(8) == 1);
  CHECK(blocks_of_row(9) == 2);
}

TEST_CASE("a generator of zeros draws zeros, whatever is asked of it") {
  Rng zero = Rng::of_zeros();
  CHECK(zero.bits64() == 0);
  CHECK(zero.normal() == 0);
  CHECK(zero.integer(3, 9) == 3);
  CHECK(same_bits(randn({2, 3}, zero), zeros({2, 3})));
  CHECK(same_bits(rand_uniform({2, 3}, -1, 1, zero, f64), zeros({2, 3}, f64)));
  CHECK_FALSE(Rng(0).draws_zeros());
}
