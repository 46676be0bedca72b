// Chapter 6. Attention with a cache against attention without: several ways to cut a sequence, both dtypes, masks,
// mistakes.
#include "nn/attention/key_value_cache.h"

#include <doctest/doctest.h>

#include "core/machine/parallel.h"
#include "nn/attention/attention.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::AttentionState;
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
        AttentionState state = layer.state(2, 4, dtype);
        const KeyValueCache& cache = state.as<KeyValueCache>();
        std::vector<Tensor> parts;
        for (const i64 n : pieces) {
          const i64 begin = cache.length;
          parts.push_back(layer.next(constant(slice(x, 1, begin, begin + n)), state).value());
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
      AttentionState state = layer.memory_state(constant(memory), mask);
      for (i64 t = 0; t < 4; ++t) {
        const Tensor one = layer.next(constant(slice(x, 1, t, t + 1)), state).value();
        CHECK(relative(one, slice(whole, 1, t, t + 1)) < bound(dtype));
      }
    }
  }
}

TEST_CASE("without keys, cached attention gives what attention gives; NaN in padding reaches no output") {
  const NoGradient nothing_recorded;
  Rng rng(8);
  const MultiHeadAttention layer = noisy_attention(f32);
  const Tensor x = randn({2, 1, 12}, rng);
  Tensor memory = randn({2, 3, 12}, rng);
  std::fill_n(memory.write<float>() + 3 * 12, 3 * 12, NAN);
  const Mask mask = Mask::padding(Tensor::of<i32>({2}, {3, 0}));
  Pass pass = Pass::inference();
  AttentionState state = layer.memory_state(constant(memory), mask);
  const Tensor y = layer.next(constant(x), state).value();
  CHECK(all_finite(y));
  CHECK(relative(y, layer(constant(x), constant(memory), mask, pass).value()) < 1e-5);
}

TEST_CASE("the bits do not depend on the number of threads") {
  const NoGradient nothing_recorded;
  const MultiHeadAttention layer = noisy_attention(f32);
  CHECK(small::same_for_any_threads([&] {
    Rng rng(9);
    AttentionState state = layer.state(3, 700, f32);
    layer.next(constant(randn({3, 690, 12}, rng)), state);
    return layer.next(constant(randn({3, 2, 12}, rng)), state).value();
  }));
}

TEST_CASE("what does not fit is refused, and so is recording") {
  Rng rng(10);
  const MultiHeadAttention layer = noisy_attention(f32);
  AttentionState state = layer.state(2, 3, f32);
  const KeyValueCache& cache = state.as<KeyValueCache>();
  const Variable x = constant(randn({2, 2, 12}, rng));
  CHECK_THROWS_WITH_AS(layer.next(x, state),
                       "attention: a cache is for generation: nothing may be recorded (NoGradient)", Error);
  const NoGradient nothing_recorded;
  layer.next(x, state);
  CHECK_THROWS_WITH_AS(layer.next(constant(randn({1, 1, 12}, rng)), state),
                       doctest::Contains("do not fit a batch of 2"), Error);
  CHECK(cache.length == 2);
  CHECK_THROWS_WITH_AS(state.as<nn::MemoryCache>(), "attention state: is of type KeyValueCache, not MemoryCache",
                       Error);
  CHECK_THROWS_AS(cached_attention(randn({2, 1, 11}, rng), cache, Mask()), Error);
  CHECK_THROWS_WITH_AS(cached_attention(randn({2, 1, 12}, rng, f64), cache, Mask()),
                       "cached attention: dtypes differ (f64 and f32)", Error);
}

TEST_CASE("chosen sequences go on as if each had a cache of its own, and room can grow") {
  const NoGradient nothing_recorded;
  Rng rng(11);
  const MultiHeadAttention layer = noisy_attention(f64, {.d_k = 5, .d_v = 7});
  AttentionState state = layer.state(3, 2, f64);
  const auto cache = [&]() -> const KeyValueCache& { return state.as<KeyValueCache>(); };
  std::vector<Tensor> read(3, Tensor::empty({1, 0, 12}, f64));  // of each sequence, all that it has read
  for (const std::vector<i64>& chosen : std::vector<std::vector<i64>>{
           {0, 1, 2}, {2, 0, 2, 2, 1}, {4, 3, 2, 1, 0}, {0, 0, 0, 4, 4, 4}, {5, 0}, {1, 1, 0, 1, 0, 0}}) {
    state.choose(chosen);
    const i64 B = std::ssize(chosen);
    CHECK(cache().sequences() == B);
    std::vector<Tensor> next;
    const Tensor x = randn({B, 1, 12}, rng, f64);
    for (i64 b = 0; b < B; ++b)
      next.push_back(concat({read[static_cast<size_t>(chosen[static_cast<size_t>(b)])], x.rows(b, b + 1)}, 1));
    read = std::move(next);
    AttentionState before = state;  // the same step from a copy, as after an error
    const Tensor y = layer.next(constant(x), state).value();
    state = std::move(before);
    CHECK(same_bits(layer.next(constant(x), state).value(), y));
    for (i64 b = 0; b < B; ++b) {
      AttentionState own = layer.state(1, cache().length, f64);
      const Tensor expected = layer.next(constant(read[static_cast<size_t>(b)]), own).value();
      CHECK(relative(y.rows(b, b + 1), slice(expected, 1, -1)) < bound(f64));
    }
  }
  CHECK(cache().capacity() == 8);
  CHECK(cache().keys.size(0) == 6);  // as many slots as there were sequences at most
  CHECK_THROWS_WITH_AS(state.choose(std::vector<i64>{0, 6}), "key/value cache: there is no sequence 6 of 6", Error);
  CHECK_THROWS_WITH_AS(state.choose(std::vector<i64>{-1}), "key/value cache: there is no sequence -1 of 6", Error);
  CHECK_THROWS_WITH_AS(state.choose(std::vector<i64>{}), "key/value cache: at least one sequence must be chosen",
                       Error);
}

TEST_CASE("sequences share a memory, each under the mask of its slot") {
  const NoGradient nothing_recorded;
  Rng rng(12);
  const MultiHeadAttention layer = noisy_attention(f64);
  const Variable memory = constant(randn({3, 8, 12}, rng, f64));
  const Tensor x = randn({5, 2, 12}, rng, f64);
  const std::vector<i64> first{2, 0, 1}, second{0, 0, 2, 1, 0}, rows{2, 2, 1, 0, 2};
  const std::vector<i32> lengths{8, 3, 5};
  AttentionState state = layer.memory_state(memory, Mask::padding(lengths));
  state.choose(first);
  state.choose(second);
  const Tensor y = layer.next(constant(x), state).value();
  CHECK(state.as<nn::MemoryCache>().keys.size(0) == 3);
  for (i64 b = 0; b < 5; ++b) {
    const i64 row = rows[static_cast<size_t>(b)];
    const Mask mask = Mask::padding(std::vector<i32>{lengths[static_cast<size_t>(row)]});
    AttentionState own = layer.memory_state(constant(memory.value().rows(row, row + 1)), mask);
    const Tensor expected = layer.next(constant(x.rows(b, b + 1)), own).value();
    CHECK(relative(y.rows(b, b + 1), expected) < bound(f64));
  }
}
