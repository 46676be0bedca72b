// Chapter 8. A bias on the scores: packed and tiled forms against the textbook form, and that against loops.
#include <doctest/doctest.h>

#include "autograd/ops/fused/attention/tiled_attention.h"
#include "core/machine/memory.h"
#include "tests/autograd/ops/textbook_attention.h"

using namespace orrery;
using namespace orrery::small;

namespace {

constexpr Draw bias_draw{.seed = 3, .step = 7, .micro = 1, .index = 4};
constexpr TileSizes bias_tile{.queries = 8, .keys = 5};

std::vector<Shape> with_bias(std::vector<Shape> shapes, const AttentionSizes& s) {
  shapes.push_back({s.h, s.n + s.m - 1});
  return shapes;
}

// Inputs without the last one, the bias.
Variables without_bias(const Variables& x) { return {x.begin(), x.end() - 1}; }

Variable biased_packed(const Variables& x, const AttentionSizes& s, const Mask& mask, double p) {
  return x.size() == 2
             ? packed_attention(x[0], {s.h, s.d_k, s.d_v}, mask, {.bias = x[1], .p = p, .draw = bias_draw})
             : packed_attention(x[0], x[1], {s.h, s.d_k, s.d_v}, mask, {.bias = x[2], .p = p, .draw = bias_draw});
}
Variable biased_tiled(const Variables& x, const AttentionSizes& s, const Mask& mask, double p) {
  return x.size() == 2
             ? tiled_attention(x[0], {s.h, s.d_k, s.d_v}, mask, {.bias = x[1], .p = p, .draw = bias_draw}, bias_tile)
             : tiled_attention(x[0], x[1], {s.h, s.d_k, s.d_v}, mask, {.bias = x[2], .p = p, .draw = bias_draw},
                               bias_tile);
}
Variable biased_textbook(const Variables& x, const AttentionSizes& s, const Mask& mask, double p) {
  return textbook_attention(without_bias(x), s, mask, p, bias_draw, x.back());
}

void check_biased(const AttentionSizes& s, const Mask& mask, double p, const std::vector<Shape>& shapes) {
  INFO(s, ", ", mask, ", p ", p);
  const std::vector<Tensor> x = normals(with_bias(shapes, s));
  const Function textbook = [&](const Variables& v) { return biased_textbook(v, s, mask, p); };
  check_fused([&](const Variables& v) { return biased_packed(v, s, mask, p); }, textbook, x);
  check_fused([&](const Variables& v) { return biased_tiled(v, s, mask, p); }, textbook, x);
}

}  // namespace

TEST_CASE("entry j - i + n - 1 stands at query i and key j, and collects their gradients") {
  for (const auto& [n, m] : {std::pair<i64, i64>{3, 3}, {2, 5}, {5, 2}, {1, 4}, {4, 1}}) {
    Rng rng(1);
    const Variable bias = parameter(randn({2, n + m - 1}, rng, f64));
    const Variable y = by_distance(bias, n, m);
    const Tensor dy = randn({2, n, m}, rng, f64);
    backward(y, dy);
    std::vector<double> expected(static_cast<size_t>(2 * (n + m - 1)), 0.0);
    for (i64 h = 0; h < 2; ++h) {
      for (i64 i = 0; i < n; ++i) {
        for (i64 j = 0; j < m; ++j) {
          const i64 entry = h * (n + m - 1) + j - i + n - 1;
          CHECK(y.value().at((h * n + i) * m + j) == bias.value().at(entry));
          expected[static_cast<size_t>(entry)] += dy.at((h * n + i) * m + j);
        }
      }
    }
    for (i64 e = 0; e < bias.value().count(); ++e)
      CHECK(bias.gradient().at(e) == doctest::Approx(expected[static_cast<size_t>(e)]).epsilon(1e-14));
  }
}

TEST_CASE("a bias by distance: self- and cross-attention in both fused forms equal the textbook form") {
  for (const AttentionSizes& s : {AttentionSizes{1, 1, 1, 1, 1, 1}, {2, 3, 5, 5, 4, 4}, {3, 2, 17, 17, 5, 7}}) {
    for (const Mask& mask : attention_masks(s)) {
      for (const double p : {0.0, 0.3}) check_biased(s, mask, p, s.self());
    }
  }
  for (const AttentionSizes& s : {AttentionSizes{1, 2, 3, 8, 2, 1}, {2, 3, 19, 6, 4, 2}}) {
    for (const Mask& mask : attention_masks(s)) check_biased(s, mask, 0.3, s.cross());
  }
}

TEST_CASE("a bias by distance over several tiles of queries, and in the form for long sequences") {
  const AttentionSizes s{1, 2, 150, 150, 3, 2}, long_one{1, 1, 140, 600, 3, 2};
  check_biased(s, Mask::causal(), 0.2, s.self());
  check_biased(s, Mask::causal() & Mask::window(20), 0, s.self());
  check_biased(long_one, Mask(), 0, long_one.cross());  // packed_attention goes by in tiles
}

TEST_CASE("a bias for each pair: as if the scores had it, whatever axes repeat") {
  const AttentionSizes s{2, 3, 4, 5, 2, 3};
  for (const Shape& shape : {Shape{2, 3, 4, 5}, Shape{1, 3, 4, 5}, Shape{2, 1, 4, 5}, Shape{1, 1, 4, 5}}) {
    std::vector<Shape> shapes = s.cross();
    shapes.push_back(shape);
    const auto expected = [&](const Variables& x) {
      const Variable Q = split_heads(x[0], 0, 3, 2), K = split_heads(x[1], 0, 3, 2), V = split_heads(x[1], 6, 3, 3);
      const Variable scores = matmul(Q, K, Trans::b) * (1 / std::sqrt(2.0)) + x[2];
      const Variable y = matmul(masked_softmax(scores, Mask::causal()), V);
      return reshape(permute(y, {0, 2, 1, 3}), {2, 4, 9});
    };
    check_fused([&](const Variables& x) { return biased_textbook(x, s, Mask::causal(), 0); }, expected,
                normals(shapes));
  }
}

TEST_CASE("a bias of 1e4 or -1e4 in what a mask hides changes no bit") {
  const AttentionSizes s{1, 1, 5, 5, 2, 2};
  for (const double huge : {1e4, -1e4}) {
    std::vector<Tensor> x = normals(with_bias(s.self(), s));
    const Function f = [&](const Variables& v) { return biased_packed(v, s, Mask::causal(), 0); };
    const Function g = [&](const Variables& v) { return biased_tiled(v, s, Mask::causal(), 0); };
    const std::vector<Tensor> packed_before = value_then_gradients(f, x), tiled_before = value_then_gradients(g, x);
    Tensor bias = x[1].clone();
    for (i64 e = s.n; e < s.n + s.m - 1; ++e) bias.write<double>()[e] = huge;  // keys after the query
    x[1] = bias;
    const std::vector<Tensor> packed_after = value_then_gradients(f, x), tiled_after = value_then_gradients(g, x);
    for (size_t i = 0; i < packed_before.size(); ++i) {
      CHECK(same_bits(packed_before[i], packed_after[i]));
      CHECK(same_bits(tiled_before[i], tiled_after[i]));
    }
  }
}

TEST_CASE("a bias by distance: the same bits for any number of threads, and no buffer of all pairs") {
  const auto in_tiles = [](const auto& x) {
    return tiled_attention(x[0], {4, 9, 11}, Mask::causal(), {.bias = x[1], .p = 0.1, .draw = bias_draw}, bias_tile);
  };
  const auto packed = [](const auto& x) {
    return packed_attention(x[0], {4, 9, 11}, Mask(), {.bias = x[1], .p = 0.1, .draw = bias_draw});
  };
  CHECK(thread_proof(in_tiles, {{3, 37, 4 * 29}, {4, 73}}));
  CHECK(thread_proof(packed, {{3, 37, 4 * 29}, {4, 73}}));
  const auto peak = [](i64 T) {
    const Variable qkv = parameter(normal({1, T, 3 * 8}, 5, f32)), bias = parameter(normal({1, 2 * T - 1}, 6, f32));
    reset_peak();
    const i64 before = memory_counters().live_bytes;
    const Variable y = packed_attention(qkv, {1, 8, 8}, Mask(), {.bias = bias});
    backward(y, full(y.shape(), 1.0));
    return static_cast<double>(memory_counters().peak_bytes - before);
  };
  if (!small::counts_memory()) return;
  const double shorter = peak(1024);
  CHECK(peak(2048) < 2.2 * shorter);
}

TEST_CASE("a bias of another shape is refused") {
  const Variable qkv = constant(zeros({2, 3, 14})), q = constant(zeros({1, 2, 3, 4}));
  CHECK_THROWS_WITH_AS(packed_attention(qkv, {2, 2, 3}, Mask(), {.bias = constant(zeros({2, 6}))}),
                       doctest::Contains("a bias of 2 heads for 3 queries and 3 keys has shape [2, 5], not [2, 6]"),
                       Error);
  CHECK_THROWS_WITH_AS(packed_attention(qkv, {2, 2, 3}, Mask(), {.bias = constant(zeros({1, 1, 3, 3}))}),
                       doctest::Contains("has shape [2, 5], not [1, 1, 3, 3]"), Error);
  CHECK_THROWS_WITH_AS(attention(q, q, q, Mask(), {.bias = constant(zeros({2, 4}))}),
                       doctest::Contains("3 queries and 3 keys need a bias of shape [h, 5], got [2, 4]"), Error);
}
