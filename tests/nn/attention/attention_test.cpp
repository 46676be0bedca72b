// Chapter 6. Multi-head attention against loops, masks, and what must not leak through them; attentions of one's own,
// and maps of queries and keys.
#include "nn/attention/attention.h"

#include <doctest/doctest.h>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention_interface.h"
#include "nn/attention/query_key_norm.h"
#include "nn/attention/rotary.h"
#include "tests/core/support.h"
#include "tests/nn/compare.h"

using namespace orrery;
using namespace orrery::nn;

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

TEST_CASE("promise 13: NaN and infinity in padding reach neither outputs nor gradients") {
  enum class Padded { memory, own, own_by_layer, own_shown, memory_shown };
  for (const Padded padded :
       {Padded::memory, Padded::own, Padded::own_by_layer, Padded::own_shown, Padded::memory_shown}) {
    nn::MultiHeadAttention layer = noisy_attention();
    if (padded == Padded::own_by_layer) layer.own_mask = padding;
    Rng rng(7);
    const Tensor clean = randn({2, 3, 6}, rng, f64);
    Tensor dirty = clean.clone();
    for (i64 i = 24; i < 36; ++i) dirty.write<double>()[i] = i % 2 ? INFINITY : NAN;  // batch row 1, positions 1 and 2
    const Variable query = constant(randn({2, 3, 6}, rng, f64));
    const auto run = [&](const Tensor& memory) {
      Pass pass;
      nn::AttentionRecorder shown;
      if (padded == Padded::own_shown || padded == Padded::memory_shown) pass.recorder = &shown;
      const Variable x = parameter(memory);
      const bool cross = padded == Padded::memory || padded == Padded::memory_shown;
      const Variable y = cross                            ? layer(query, x, padding, pass)
                         : padded == Padded::own_by_layer ? layer(x, Mask(), pass)
                                                          : layer(x, padding, pass);
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

namespace {

// Every position takes the mean of all.
struct MeanAttention : Attention {
  Variable self_attention(const Variable& x, const Mask&, Pass&) const override { return x * 0.0 + mean(x, {1}, true); }
  void visit(Visitor&) override {}
};

struct ScaledByPosition : QueryKeyMap {
  Variable queries(const Variable& Q, i64 first_position) const override {
    return Q * (2.0 + static_cast<double>(first_position));
  }
  void visit(Visitor&) override {}
};

}  // namespace

TEST_CASE("self-attention is called through the layer's own operator") {
  const MeanAttention attention;
  Pass pass;
  const Variable y = attention(constant(Tensor::of<double>({1, 2, 1}, {1, 3})), Mask(), pass);
  CHECK(y.value()(0, 0, 0) == 2);
  CHECK(y.value()(0, 1, 0) == 2);
}

TEST_CASE("what an attention does not have is an error, not a wrong answer") {
  const MeanAttention attention;
  Pass pass;
  const Variable x = constant(zeros({1, 2, 4}));
  AttentionState other = KeyValueCache{};
  const std::string no_state = "attention: MeanAttention does not generate: it has no state",
                    no_memory = "attention: MeanAttention has no cross-attention to generate with";
  CHECK(small::error_of([&] { attention(x, x, Mask(), pass); }) == "attention: MeanAttention has no cross-attention");
  CHECK(small::error_of([&] { attention.state(1, 4, f32); }) == no_state);
  CHECK(small::error_of([&] { attention.next(x, other); }) == no_state);
  CHECK(small::error_of([&] { attention.memory_state(x, Mask()); }) == no_memory);
}

TEST_CASE("a recorder has the weights of each attention's last call, and says which attention recorded none") {
  Rng rng(1);
  const MultiHeadAttention first(4, 2, rng), second(4, 2, rng);
  const MeanAttention third;
  const Variable x = constant(randn({1, 3, 4}, rng));
  AttentionRecorder seen;
  Pass pass;
  pass.recorder = &seen;
  first(x, Mask(), pass);
  second(x, x, Mask(), pass);
  third(first(x, Mask::causal(), pass), Mask(), pass);
  REQUIRE(seen.all.size() == 3);
  CHECK(seen.of(second).data<float>() == seen.all[1].weights.data<float>());
  CHECK(seen.of(first)(0, 1, 0, 2) == 0);  // causal
  CHECK(small::error_of([&] { seen.of(third); }) ==
        "attention recorder: this module has recorded no attention weights");
}

TEST_CASE("keys are changed as queries are, unless a map says otherwise") {
  const ScaledByPosition map;
  const Variable K = constant(full({1, 2, 1, 2}, 1.5));
  CHECK(map.keys(K, 3).value()(0, 0, 0, 0) == map.queries(K, 3).value()(0, 0, 0, 0));
  CHECK(map.keys(K, 3).value()(0, 1, 0, 1) == 7.5);
}

TEST_CASE("pair i at position pos is turned by pos / 10000^(2i / d_k)") {
  const Rotary map(8, 4);
  const Tensor y = map.queries(constant(Tensor::of<double>({1, 1, 1, 4}, {1, 0, 0, 1})), 3).value();
  CHECK(std::abs(y(0, 0, 0, 0) - std::cos(3.0)) < 1e-15);  // (1, 0), i = 0
  CHECK(std::abs(y(0, 0, 0, 2) - std::sin(3.0)) < 1e-15);
  CHECK(std::abs(y(0, 0, 0, 1) + std::sin(0.03)) < 1e-15);  // (0, 1), i = 1
  CHECK(std::abs(y(0, 0, 0, 3) - std::cos(0.03)) < 1e-15);
}

TEST_CASE("scores stay when all positions move on, and lengths stay") {
  const Rotary map(60, 6);
  Rng rng(1);
  const Tensor q = randn({1, 5, 2, 6}, rng, f64), k = randn({1, 5, 2, 6}, rng, f64);
  const auto scores = [&](i64 first) {
    const Tensor Q = permute(map.queries(constant(q), first).value(), {0, 2, 1, 3});
    const Tensor K = permute(map.keys(constant(k), first).value(), {0, 2, 1, 3});
    return matmul(Q, K, Trans::b);
  };
  CHECK(distance(scores(0), scores(50)) < 1e-13);
  const Tensor still = matmul(permute(q, {0, 2, 1, 3}), permute(k, {0, 2, 1, 3}), Trans::b);
  CHECK(distance(scores(0), still) > 0.1);
  CHECK(std::abs(sum_of_squares(map.queries(constant(q), 7).value()) - sum_of_squares(q)) < 1e-12);
}

TEST_CASE("rows that come one at a time are those of all at once") {
  const Rotary map = Rotary(5, 4).clone();
  Rng rng(2);
  const Tensor q = randn({2, 5, 3, 4}, rng);
  const Tensor all = map.queries(constant(q), 0).value();
  for (i64 i = 0; i < 5; ++i)
    CHECK(same_bits(map.queries(constant(slice(q, 1, i, i + 1)), i).value(), slice(all, 1, i, i + 1)));
}

TEST_CASE("positions beyond the last, and heads of an odd size, are errors") {
  const Variable q = constant(zeros({1, 2, 1, 4}));
  CHECK_THROWS_WITH_AS(Rotary(5, 4).queries(q, 4), "rotary: a sequence has 6 positions, but max_len is 5", Error);
  CHECK_THROWS_WITH_AS(Rotary(5, 3), "rotary: needs an even d_k, got 3", Error);
}

TEST_CASE("a score is g times the cosine of query and key, after the division by sqrt(d_k)") {
  QueryKeyNorm map(64);
  to(map, f64);
  CHECK(std::abs(map.g.value().at(0) - std::log2(64.0 * 64 - 64)) < 1e-6);
  Rng rng(1);
  const Tensor q = randn({1, 4, 1, 8}, rng, f64), k = randn({1, 4, 1, 8}, rng, f64);
  const Tensor Q = map.queries(constant(q), 0).value(), K = map.keys(constant(k), 0).value();
  const auto product = [](const Tensor& a, i64 i, const Tensor& b, i64 j) {
    double sum = 0;
    for (i64 c = 0; c < 8; ++c) sum += a(0, i, 0, c) * b(0, j, 0, c);
    return sum;
  };
  for (i64 i = 0; i < 4; ++i)
    for (i64 j = 0; j < 4; ++j) {
      const double cosine = product(q, i, k, j) / std::sqrt(product(q, i, q, i) * product(k, j, k, j));
      CHECK(std::abs(product(Q, i, K, j) / std::sqrt(8.0) - map.g.value().at(0) * cosine) < 1e-4);  // eps of rms_norm
    }
}

TEST_CASE("queries of any size give the same attention") {
  Rng rng(2);
  nn::MultiHeadAttention attention(8, 2, rng);
  attention.query_key_map = QueryKeyNorm(16, nn::Rotary(16, 4));
  to(attention, f64);
  nn::Pass pass = nn::Pass::inference();
  const Variable x = constant(randn({2, 5, 8}, rng, f64));
  const Tensor before = attention(x, Mask::causal(), pass).value();
  Tensor weight = attention.in_proj.weight.mutable_value().rows(0, 16);  // of queries and keys
  scale_in_place(weight, 1000.0);
  CHECK(distance(attention(x, Mask::causal(), pass).value(), before) < 1e-4);
}

TEST_CASE("a clone has a number of its own, and the same map before the norm") {
  QueryKeyNorm map(16, nn::Rotary(16, 4));
  fill(map.g.mutable_value(), 3);
  QueryKeyNorm copy = map.clone();
  Rng rng(3);
  const Variable q = constant(randn({1, 3, 2, 4}, rng));
  CHECK(same_bits(copy.queries(q, 5).value(), map.queries(q, 5).value()));
  CHECK(same_bits(copy.keys(q, 5).value(), map.keys(q, 5).value()));
  fill(copy.g.mutable_value(), 4);
  CHECK(map.g.value().at(0) == 3);
  CHECK(QueryKeyNorm(1).g.value().at(0) == 1);  // log2(2^2 - 2): a length of 1 counts as 2
}
