// Chapter 6. Attention against loops over the definition; masks that never leak.
#include "core/mask.h"
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

namespace {

struct Trio {
  Tensor Q = normal({2, 3, 4, 5}, 1), K = normal({2, 3, 6, 5}, 2), V = normal({2, 3, 6, 2}, 3);
};

// Value and gradients in one row.
Tensor all_of(const Trio& t, const Mask& mask) {
  return value_and_gradients([&](const auto& x) { return attention(x[0], x[1], x[2], mask).output; }, {t.Q, t.K, t.V});
}

}  // namespace

TEST_CASE("attention equals the definition under every kind of mask, in f64 and f32") {
  const Trio t;
  Tensor table = Tensor::of<i32>({4, 6}, std::vector<i32>(24, 1));
  for (const i64 hidden : {0, 3, 8, 12, 13, 14, 15, 16, 17}) table.write<i32>()[hidden] = 0;  // query 2 sees nothing
  for (const Mask& mask : {Mask(), Mask::causal(), Mask::padding({6, 2}), Mask::padding({0, 3}), Mask::allow(table),
                           Mask::causal() & Mask::padding({3, 5}) & Mask::allow(table)}) {
    CAPTURE(mask);
    const auto result = attention(constant(t.Q), constant(t.K), constant(t.V), mask);
    const AttentionByLoops loops = attention_by_loops(t.Q, t.K, t.V, mask);
    const std::vector<double> expected = elements(loops.output);
    CHECK(close(result.output.value(), expected));
    CHECK(close(result.weights.value(), elements(loops.weights)));
    CHECK(close(attention(constant(t.Q.to(f32)), constant(t.K.to(f32)), constant(t.V.to(f32)), mask).output.value(),
                expected, 2e-6));
  }
}

TEST_CASE("promise 13: a query that may see nothing gives zeros and zero gradients") {
  const Trio t;
  const Variable Q = parameter(t.Q), K = parameter(t.K), V = parameter(t.V);
  const auto [output, weights] = attention(Q, K, V, Mask::padding({0, 6}));
  backward(output, normal(output.shape()));
  for (i64 i = 0; i < output.value().count() / 2; ++i) CHECK(output.value().at(i) == 0.0);
  for (const Variable& x : {Q, K, V}) {
    for (i64 i = 0; i < x.gradient().count() / 2; ++i) CHECK(x.gradient().at(i) == 0.0);
    CHECK(all_finite(x.gradient()));
  }
  CHECK(masked_softmax(constant(zeros({1, 1, 2, 0})), Mask()).shape() == Shape{1, 1, 2, 0});
}

TEST_CASE("promise 13: what stands beyond a padding length changes no bit, not even NaN") {
  const Trio clean;
  const Mask mask = Mask::padding({4, 6});
  for (const double poison : {std::nan(""), std::numeric_limits<double>::infinity(), 1e30}) {
    Trio poisoned{clean.Q, clean.K.clone(), clean.V.clone()};
    for (i64 head = 0; head < 3; ++head) {
      for (i64 j = 4; j < 6; ++j) {
        for (i64 k = 0; k < 5; ++k) poisoned.K.write<double>()[(head * 6 + j) * 5 + k] = poison;
        for (i64 c = 0; c < 2; ++c) poisoned.V.write<double>()[(head * 6 + j) * 2 + c] = poison;
      }
    }
    CHECK(same_bits(all_of(clean, mask), all_of(poisoned, mask)));
  }
}

TEST_CASE("promise 13: values up to 1e30 hidden by causal or explicit masks change no bit of the output") {
  Trio t, loud;
  t.Q = loud.Q = normal({2, 3, 6, 5}, 1);  // as many queries as keys: the last key is seen by the last query alone
  for (i64 head = 0; head < 6; ++head) {
    for (i64 c = 0; c < 2; ++c) loud.V.write<double>()[(head * 6 + 5) * 2 + c] = 1e30;
    for (i64 k = 0; k < 5; ++k) loud.K.write<double>()[(head * 6 + 5) * 5 + k] = -1e30;
  }
  std::vector<i32> all_but_last(36, 1);
  for (size_t i = 0; i < 6; ++i) all_but_last[i * 6 + 5] = 0;
  for (const auto& [mask, rows] :
       {std::pair{Mask::causal(), 5}, {Mask::allow(Tensor::of<i32>({6, 6}, all_but_last)), 6}}) {
    const Tensor quiet = attention(constant(t.Q), constant(t.K), constant(t.V), mask).output.value();
    const Tensor y = attention(constant(loud.Q), constant(loud.K), constant(loud.V), mask).output.value();
    CHECK(same_bits(slice(quiet, 2, 0, rows), slice(y, 2, 0, rows)));
  }
}

TEST_CASE("dropout falls on the weights, and the weights returned are those before it") {
  const Trio t;
  const Draw draw{.seed = 4};
  const auto plain = attention(constant(t.Q), constant(t.K), constant(t.V), Mask());
  const auto noisy = attention(constant(t.Q), constant(t.K), constant(t.V), Mask(), {.p = 0.5, .draw = draw});
  CHECK(same_bits(plain.weights.value(), noisy.weights.value()));
  // A row of the mask for each key.
  const Variable kept = permute(dropout(permute(plain.weights, {0, 1, 3, 2}), 0.5, draw), {0, 1, 3, 2});
  CHECK(same_bits(noisy.output.value(), matmul(kept, constant(t.V)).value()));
}

TEST_CASE("attention's errors name the rule") {
  const Trio t;
  const Variable Q = constant(t.Q), K = constant(t.K), V = constant(t.V);
  CHECK(contains(error_of([&] {
                   (void)attention(reshape(Q, {6, 4, 5}), K, V, Mask());
                 }),
                 "attention: Q, K and V need shape [B, h, length, d]"));
  CHECK(contains(error_of([&] { (void)attention(reshape(Q, {6, 4, 5}), K, V, Mask()); }), "\n  input 1: "));
  const Shape without_heads{6, 6, -1};
  CHECK(contains(error_of([&] { (void)attention(Q, reshape(K, without_heads), V, Mask()); }), "need shape [B, h"));
  CHECK(contains(error_of([&] { (void)attention(Q, K, reshape(V, without_heads), Mask()); }), "need shape [B, h"));
  for (const double p : {-0.1, std::nan("")}) {
    CHECK(contains(error_of([&] { (void)attention(Q, K, V, Mask(), {.p = p}); }), "needs a probability in [0, 1]"));
  }
  CHECK(contains(error_of([&] { (void)attention(Q, K, V, Mask::padding({1, 2, 3})); }), "lengths for 3 batch rows"));
  CHECK(contains(error_of([&] {
                   (void)attention(Q, K, V, Mask::allow(full({4, 5}, 1, Dtype::i32)));
                 }),
                 "does not fit scores"));
}

TEST_CASE("attention has the same bits for any number of threads") {
  const Mask mask = Mask::causal() & Mask::padding({37, 20, 0});
  CHECK(thread_proof(
      [&](const auto& x) { return attention(x[0], x[1], x[2], mask, {.p = 0.1, .draw = {.seed = 1}}).output; },
      {{3, 4, 37, 9}, {3, 4, 37, 9}, {3, 4, 37, 11}}));
}
