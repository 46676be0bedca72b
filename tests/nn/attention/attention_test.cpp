// Chapter 6. Multi-head attention against triple loops, masks, and what must not leak through them.
#include "nn/attention/attention.h"

#include <doctest/doctest.h>

#include <limits>

#include "autograd/ops.h"
#include "core/mask.h"
#include "tests/nn/compare.h"

using namespace orrery;
using nn::Pass;

namespace {

// Section 3.2.2 by loops: x [B, n, D], memory [B, m, D].
AttentionByLoops naive_attention(const nn::MultiHeadAttention& layer, const Tensor& x, const Tensor& memory,
                                 const Mask& mask) {
  const i64 B = x.size(0), h = layer.num_heads, keys = h * layer.d_k;
  const Tensor W = layer.in_proj.weight.value(), b = layer.in_proj.bias.value();
  // Columns [begin, end) of the projections, [B, h, length, columns of a head].
  const auto heads = [&](const Tensor& in, i64 begin, i64 end) {
    const Tensor all = naive_linear(in, slice(W, 0, begin, end), b.defined() ? slice(b, 0, begin, end) : b);
    return permute(all.reshape({B, in.size(1), h, -1}), {0, 2, 1, 3});
  };
  const auto [y, weights] =
      attention_by_loops(heads(x, 0, keys), heads(memory, keys, 2 * keys), heads(memory, 2 * keys, W.size(0)), mask);
  const Tensor joined = permute(y, {0, 2, 1, 3}).reshape({B, x.size(1), -1});
  return {naive_linear(joined, layer.out_proj.weight.value(), layer.out_proj.bias.value()), weights};
}

nn::MultiHeadAttention noisy_attention(const nn::AttentionOptions& options = {}) {
  Rng rng(4);
  nn::MultiHeadAttention layer(6, 2, rng, options);
  make_noisy(layer, 5);
  return layer;
}

void check_against_loops(const nn::MultiHeadAttention& layer, i64 m, const Mask& mask) {
  Rng rng(6);
  const Tensor x = randn({2, 3, 6}, rng, f64), memory = randn({2, m, 6}, rng, f64);
  nn::AttentionRecorder seen;
  const AttentionByLoops cross = naive_attention(layer, x, memory, mask);
  for (nn::AttentionRecorder* recorder : {&seen, static_cast<nn::AttentionRecorder*>(nullptr)}) {  // composed, fused
    Pass pass;
    pass.recorder = recorder;
    CHECK(distance(layer(constant(x), constant(memory), mask, pass).value(), cross.output) < 1e-13);
    if (recorder) CHECK(distance(seen.of(layer), cross.weights) < 1e-14);
    if (m != 3) continue;
    CHECK(distance(layer(constant(x), mask, pass).value(), naive_attention(layer, x, x, mask).output) < 1e-13);
  }
}

const Mask padding = Mask::padding(Tensor::of<i32>({2}, {3, 1}));

}  // namespace

TEST_CASE("attention equals its formula: self, cross, every kind of mask") {
  const nn::MultiHeadAttention layer = noisy_attention();
  const Mask table = Mask::allow(Tensor::of<i32>({3, 3}, {1, 0, 1, 0, 0, 0, 1, 1, 0}));
  for (const Mask& mask : {Mask(), Mask::causal(), padding, Mask::causal() & padding, table, Mask::window(1),
                           Mask::window(2, 0) & padding})
    check_against_loops(layer, 3, mask);
  for (const Mask& mask : {Mask(), Mask::causal(), padding}) check_against_loops(layer, 5, mask);
  check_against_loops(layer, 1, Mask());
}

TEST_CASE("attention equals its formula with any d_k and d_v, and without a bias") {
  check_against_loops(noisy_attention({.d_k = 2, .d_v = 5}), 4, Mask());
  check_against_loops(noisy_attention({.d_k = 4, .d_v = 1, .bias = false}), 3, Mask::causal());
}

TEST_CASE("parameters have PyTorch's names and shapes") {
  nn::MultiHeadAttention layer = noisy_attention({.d_k = 2, .d_v = 5});
  const Parameters parameters = layer.parameters();
  REQUIRE(parameters.size() == 4);
  CHECK(parameters[0].name == "in_proj.weight");
  CHECK(parameters[0].value.shape() == Shape{2 * (2 + 2 + 5), 6});
  CHECK(parameters[1].name == "in_proj.bias");
  CHECK(parameters[2].name == "out_proj.weight");
  CHECK(parameters[2].value.shape() == Shape{6, 10});
  CHECK(parameters[3].name == "out_proj.bias");
  nn::MultiHeadAttention even = noisy_attention();
  CHECK(even.in_proj.weight.shape() == Shape{18, 6});
}

TEST_CASE("self-attention and cross-attention to itself agree") {
  const nn::MultiHeadAttention layer = noisy_attention();
  Rng rng(7);
  const Variable x = constant(randn({2, 4, 6}, rng, f64));
  Pass pass;
  CHECK(distance(layer(x, Mask::causal(), pass).value(), layer(x, x, Mask::causal(), pass).value()) < 1e-13);
}

TEST_CASE("promise 13: NaN and infinity in padding reach neither outputs nor gradients") {
  enum class Padded { memory, own, own_by_layer };
  for (const Padded padded : {Padded::memory, Padded::own, Padded::own_by_layer}) {
    nn::MultiHeadAttention layer = noisy_attention();
    if (padded == Padded::own_by_layer) layer.own_mask = padding;
    Rng rng(7);
    const Tensor clean = randn({2, 3, 6}, rng, f64);
    Tensor dirty = clean.clone();
    for (i64 i = 24; i < 36; ++i) dirty.write<double>()[i] = i % 2 ? INFINITY : NAN;  // batch row 1, positions 1 and 2
    const Variable query = constant(randn({2, 3, 6}, rng, f64));
    const auto run = [&](const Tensor& memory) {
      Pass pass;
      const Variable x = parameter(memory);
      const Variable y = padded == Padded::memory ? layer(query, x, padding, pass)
                         : padded == Padded::own  ? layer(x, padding, pass)
                                                  : layer(x, Mask(), pass);
      for (NamedParameter& p : layer.parameters()) p.value.clear_gradient();
      backward(sum(y * y));
      std::vector<Tensor> results{y.value(), x.gradient()};
      for (const NamedParameter& p : layer.parameters()) results.push_back(p.value.gradient());
      return results;
    };
    const std::vector<Tensor> expected = run(clean), results = run(dirty);
    for (size_t i = 0; i < results.size(); ++i) {
      CHECK(all_finite(results[i]));
      CHECK(same_bits(results[i], expected[i]));
    }
    CHECK(distance(slice(results[1].rows(1, 2), 1, 1), zeros({1, 2, 6}, f64)) == 0);
  }
}

TEST_CASE("promise 13: a query that may see nothing gives the output's bias and passes no gradient") {
  nn::MultiHeadAttention layer = noisy_attention();
  Rng rng(7);
  const Variable x = parameter(randn({1, 2, 6}, rng, f64)), memory = parameter(randn({1, 3, 6}, rng, f64));
  const Mask mask = Mask::allow(Tensor::of<i32>({2, 3}, {0, 0, 0, 1, 1, 0}));
  nn::AttentionRecorder seen;
  Pass pass;
  pass.recorder = &seen;
  const Variable y = layer(x, memory, mask, pass);
  CHECK(distance(slice(y.value(), 1, 0, 1).reshape({6}), layer.out_proj.bias.value()) == 0);
  CHECK(distance(slice(seen.of(layer), 2, 0, 1), zeros({1, 2, 1, 3}, f64)) == 0);
  backward(slice(y, 1, 0, 1), full({1, 1, 6}, 1.0, f64));
  CHECK(distance(x.gradient(), zeros({1, 2, 6}, f64)) == 0);
  CHECK(distance(memory.gradient(), zeros({1, 3, 6}, f64)) == 0);
}

TEST_CASE("causal: a later token leaves earlier outputs bit-equal") {
  Rng rng(7);
  const nn::MultiHeadAttention layer(8, 2, rng);
  Tensor x = randn({1, 5, 8}, rng);
  Pass pass;
  const Tensor before = layer(constant(x.clone()), Mask::causal(), pass).value();
  for (i64 i = 24; i < 40; ++i) x.write<float>()[i] += 1e3F;
  const Tensor after = layer(constant(x), Mask::causal(), pass).value();
  CHECK(same_bits(slice(before, 1, 0, 3), slice(after, 1, 0, 3)));
  CHECK(distance(slice(before, 1, 3), slice(after, 1, 3)) > 0);
}

TEST_CASE("dropout falls on the weights in training; the weights shown are those before it") {
  const nn::MultiHeadAttention layer = noisy_attention({.dropout = 0.5});
  Rng rng(7);
  const Variable x = constant(randn({2, 4, 6}, rng, f64));
  Pass training = Pass::training(1, 1), again = Pass::training(1, 1), inference;
  nn::AttentionRecorder shown, plain;
  training.recorder = &shown;
  inference.recorder = &plain;
  const Tensor y = layer(x, Mask(), training).value();
  CHECK(distance(y, layer(x, Mask(), again).value()) < 1e-13);  // fused and composed drop the same weights
  CHECK(distance(y, layer(x, Mask(), inference).value()) > 0);
  CHECK(same_bits(shown.of(layer), plain.of(layer)));
  CHECK(training.draws == 1);
  CHECK(inference.draws == 0);
}

TEST_CASE("sizes that do not fit are errors") {
  Rng rng(1);
  CHECK_THROWS_WITH_AS(nn::MultiHeadAttention(6, 4, rng),
                       doctest::Contains("d_model (6) is not a multiple of num_heads (4)"), Error);
  CHECK_NOTHROW(nn::MultiHeadAttention(6, 4, rng, {.d_k = 2, .d_v = 2}));
  CHECK_THROWS_AS(nn::MultiHeadAttention(6, 0, rng), Error);
  CHECK_THROWS_AS(nn::MultiHeadAttention(6, 2, rng, {.dropout = 1.0}), Error);
  const nn::MultiHeadAttention layer = noisy_attention();
  Pass pass;
  CHECK_THROWS_WITH_AS(layer(constant(zeros({2, 3, 5}, f64)), Mask(), pass), doctest::Contains("inner sizes differ"),
                       Error);
  const Mask three = Mask::padding(Tensor::of<i32>({3}, {1, 1, 1}));
  CHECK_THROWS_AS(layer(constant(zeros({2, 3, 6}, f64)), three, pass), Error);
}
