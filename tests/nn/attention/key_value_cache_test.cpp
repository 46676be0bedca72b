// Chapter 6. Attention with a cache against attention without: all ways to cut a sequence, both dtypes, masks,
// mistakes.
#include "nn/attention/key_value_cache.h"

#include <doctest/doctest.h>

#include "core/machine/parallel.h"
#include "nn/attention/attention.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::KeyValueCache;
using nn::MultiHeadAttention;
using nn::Pass;

namespace {

MultiHeadAttention noisy_attention(Dtype dtype, const nn::AttentionOptions& options = {}) {
  Rng rng(4);
  MultiHeadAttention layer(12, 3, rng, options);
  make_noisy(layer, 5);
  to(layer, dtype);
  return layer;
}

}  // namespace

TEST_CASE("self-attention in pieces is causal self-attention of the whole") {
  const NoGradient nothing_recorded;
  Rng rng(6);
  for (const Dtype dtype : {f32, f64}) {
    for (const nn::AttentionOptions& options :
         {nn::AttentionOptions{}, nn::AttentionOptions{.d_k = 5, .d_v = 7, .bias = false}}) {
      const MultiHeadAttention layer = noisy_attention(dtype, options);
      const Tensor x = randn({2, 21, 12}, rng, dtype);
      Pass pass = Pass::inference();
      const Tensor whole = layer(constant(x), Mask::causal(), pass).value();
      for (const std::vector<i64>& pieces : {std::vector<i64>{21}, {1, 1, 1, 18}, {20, 1}, {5, 3, 1, 12}, {1, 19, 1}}) {
        KeyValueCache cache = layer.empty_cache(2, 24, layer.in_proj.weight.dtype());
        std::vector<Tensor> parts;
        for (const i64 n : pieces) {
          const i64 begin = cache.length;
          parts.push_back(layer.extend(constant(slice(x, 1, begin, begin + n)), cache).value());
        }
        CHECK(cache.length == 21);
        CHECK(relative(concat(parts, 1), whole) < bound(dtype));
      }
    }
  }
}

TEST_CASE("cross-attention over a cache made once is cross-attention, under each mask") {
  const NoGradient nothing_recorded;
  Rng rng(7);
  for (const Dtype dtype : {f32, f64}) {
    const MultiHeadAttention layer = noisy_attention(dtype, {.d_k = 3, .d_v = 6});
    const Tensor x = randn({2, 4, 12}, rng, dtype);
    Tensor memory = randn({2, 9, 12}, rng, dtype);
    const Mask padding = Mask::padding(Tensor::of<i32>({2}, {9, 5}));
    const Tensor table = randint(0, 2, {2, 1, 1, 9}, rng);
    for (const Mask& mask : {Mask(), padding, Mask::allow(table), padding & Mask::allow(table)}) {
      Pass pass = Pass::inference();
      const Tensor whole = layer(constant(x), constant(memory), mask, pass).value();
      const KeyValueCache cache = layer.cache_memory(constant(memory));
      for (i64 t = 0; t < 4; ++t) {
        const Tensor one = layer.attend_to_cached(constant(slice(x, 1, t, t + 1)), cache, mask).value();
        CHECK(relative(one, slice(whole, 1, t, t + 1)) < bound(dtype));
      }
    }
  }
}

TEST_CASE("a row without keys gives what a row without keys gives, and NaN behind padding never arrives") {
  const NoGradient nothing_recorded;
  Rng rng(8);
  const MultiHeadAttention layer = noisy_attention(f32);
  const Tensor x = randn({2, 1, 12}, rng);
  Tensor memory = randn({2, 3, 12}, rng);
  std::fill_n(memory.write<float>() + 3 * 12, 3 * 12, NAN);
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {3, 0}));
  Pass pass = Pass::inference();
  const Tensor y = layer.attend_to_cached(constant(x), layer.cache_memory(constant(memory)), mask).value();
  CHECK(all_finite(y));
  CHECK(relative(y, layer(constant(x), constant(memory), mask, pass).value()) < 1e-5);
}

TEST_CASE("the bits do not depend on the number of threads") {
  const NoGradient nothing_recorded;
  const MultiHeadAttention layer = noisy_attention(f32);
  const int before = threads();
  Tensor expected;
  for (int t : {1, 2, 3, 4, 8}) {
    set_threads(t);
    Rng rng(9);
    KeyValueCache cache = layer.empty_cache(3, 700, layer.in_proj.weight.dtype());
    layer.extend(constant(randn({3, 690, 12}, rng)), cache);
    const Tensor y = layer.extend(constant(randn({3, 2, 12}, rng)), cache).value();
    if (t == 1) expected = y;
    CHECK(same_bits(y, expected));
  }
  set_threads(before);
}

TEST_CASE("what does not fit is refused, and so is recording") {
  Rng rng(10);
  const MultiHeadAttention layer = noisy_attention(f32);
  KeyValueCache cache = layer.empty_cache(2, 3, layer.in_proj.weight.dtype());
  const Variable x = constant(randn({2, 2, 12}, rng));
  CHECK_THROWS_WITH_AS(layer.extend(x, cache),
                       "attention: a cache is for generation: nothing may be recorded (NoGradient)", Error);
  const NoGradient nothing_recorded;
  layer.extend(x, cache);
  CHECK_THROWS_WITH_AS(layer.extend(x, cache), "key/value cache: is full: 2 + 2 positions of 3", Error);
  CHECK(cache.length == 2);
  CHECK_THROWS_WITH_AS(layer.extend(constant(randn({1, 1, 12}, rng)), cache),
                       doctest::Contains("do not fit a batch of 2"), Error);
  CHECK_THROWS_AS(cached_attention(randn({2, 1, 11}, rng), cache, Mask()), Error);
  CHECK_THROWS_WITH_AS(cached_attention(randn({2, 1, 12}, rng, f64), cache, Mask()),
                       "cached attention: dtypes differ (f64 and f32)", Error);
}
