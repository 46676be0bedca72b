// Chapter 6. Attention against loops over the definition; errors and memory of its fused forms. What must not leak
// through masks is in tests/autograd/ops/fused/attention/fused_attention_test.cpp, for this form as well.
#include "autograd/ops/fused/attention/tiled_attention.h"
#include "core/machine/memory.h"
#include "core/mask.h"
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

struct Trio {
  Tensor Q = normal({2, 3, 4, 5}, 1), K = normal({2, 3, 6, 5}, 2), V = normal({2, 3, 6, 2}, 3);
};

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
  const Variable flat = reshape(Q, {6, 4, 5}), many = reshape(K, {6, 6, 5});
  for (const auto& [q, k] : {std::pair{flat, K}, {Q, many}})
    CHECK(contains(error_of([&, q = q, k = k] { (void)attention(q, k, V, Mask()); }),
                   "attention: Q, K and V need shape [B, h, length, d]"));
  CHECK(contains(error_of([&] { (void)attention(flat, K, V, Mask()); }), "\n  input 1: "));
  CHECK(contains(error_of([&] { (void)attention(Q, K, many, Mask()); }), "need shape [B, h"));
  for (const double p : {-0.1, std::nan("")}) {
    CHECK(contains(error_of([&] { (void)attention(Q, K, V, Mask(), {.p = p}); }), "needs a probability in [0, 1]"));
  }
  CHECK(contains(error_of([&] { (void)attention(Q, K, V, Mask::padding({1, 2, 3})); }), "lengths for 3 batch rows"));
  const Mask table = Mask::allow(full({4, 5}, 1, Dtype::i32));
  CHECK(contains(error_of([&] { (void)attention(Q, K, V, table); }), "does not fit scores"));
  const Variable bias = constant(zeros({3, 4}, f64));
  CHECK(contains(error_of([&] { (void)attention(Q, K, V, Mask(), {.bias = bias}); }),
                 "4 queries and 6 keys need a bias of shape [h, 9], got [3, 4]"));
}

TEST_CASE("a bias by distance: entry j - i + n - 1 stands at query i and key j") {
  for (const auto& [n, m] : {std::pair<i64, i64>{3, 3}, {2, 5}, {5, 2}, {1, 4}, {4, 1}}) {
    const Tensor bias = normal({2, n + m - 1}), y = by_distance(constant(bias), n, m).value();
    for (i64 at = 0; at < y.count(); ++at) CHECK(y.at(at) == bias(at / (n * m), at % m - at / m % n + n - 1));
  }
}

TEST_CASE("errors of fused attention name the rule, whatever the length") {
  const Variable qkv = constant(zeros({2, 3, 16})), q = constant(zeros({2, 3, 6})), kv = constant(zeros({2, 4, 10}));
  const auto check_error = [&](const Variables& x, const HeadSizes& heads, const char* part, const Mask& mask = {},
                               const AttentionWeightOptions& options = {}) {
    const std::string error = error_of([&] {
      (void)(x.size() == 1 ? packed_attention(x[0], heads, mask, options)
                           : packed_attention(x[0], x[1], heads, mask, options));
    });
    CHECK_MESSAGE(contains(error, part), error);
  };
  check_error({qkv}, {2, 3, 3}, "packed_attention: 2 heads of 3 and 3 need 18 columns, got [2, 3, 16]");
  check_error({constant(zeros({1, 600, 16}))}, {2, 3, 3}, "need 18 columns, got [1, 600, 16]");
  check_error({q, kv}, {2, 3, 3}, "need 6 and 12 columns");
  check_error({q, qkv}, {0, 3, 2}, "needs at least one head");
  check_error({q, qkv}, {2, 0, 2}, "sizes above 0, got 2 heads of 0");
  check_error({q, qkv}, {2, 3, 0}, "sizes above 0, got 2 heads of 3");
  check_error({q, constant(zeros({4, 10}))}, {2, 3, 2}, "inputs need shape [B, length, columns]");
  check_error({constant(zeros({3, 16}))}, {2, 3, 2}, "inputs need shape [B, length, columns]");
  check_error({constant(zeros({1, 3, 6})), kv}, {2, 3, 2}, "batch sizes differ (1 and 2)");
  check_error({constant(zeros({1, 3, 6})), constant(zeros({2, 600, 10}))}, {2, 3, 2}, "batch sizes differ");
  check_error({q, kv}, {2, 3, 2}, "a probability in [0, 1]", {}, {.p = 1.5});
  check_error({q, kv}, {2, 3, 2}, "lengths for 3 batch rows", Mask::padding({1, 2, 3}));
  check_error({q, kv}, {2, 3, 2}, "does not fit scores", Mask::allow(full({3, 3}, 1, Dtype::i32)));
  for (const Shape& bias : {Shape{2, 6}, Shape{1, 1, 3, 3}})
    check_error({qkv}, {2, 2, 4}, "a bias of 2 heads for 3 queries and 3 keys has shape [2, 5], not ", {},
                {.bias = constant(zeros(bias))});
  for (const TileSizes tile : {TileSizes{0, 8}, TileSizes{4, 8}, TileSizes{136, 8}, TileSizes{8, 0}, TileSizes{8, 513}})
    CHECK(contains(error_of([&] { (void)tiled_attention(qkv, {2, 3, 2}, Mask(), {}, tile); }), "no tiles of"));
}

TEST_CASE("without a tape, attention keeps no weights, and gives the same bits") {
  const i64 B = 80, h = 1, T = 64, d = 4, weights = B * h * T * T * 8;
  const Tensor qkv = normal({B, T, h * 3 * d});
  for (const double p : {0.0, 0.3}) {
    const auto peak_of = [&](const Variable& x, Tensor& y) {
      reset_peak();
      const i64 before = memory_counters().live_bytes;
      y = packed_attention(x, {h, d, d}, Mask::causal(), {.p = p, .draw = Draw{.seed = 3}}).value();
      return memory_counters().peak_bytes - before;
    };
    Tensor kept, unkept;
    const i64 with_tape = peak_of(parameter(qkv), kept), without = peak_of(constant(qkv), unkept);
    CHECK(same_bits(kept, unkept));
    if (!counts_memory()) continue;
    CHECK(with_tape > weights);
    CHECK(without < weights / 2);
  }
}

TEST_CASE("long attention holds no scores, with a bias or without: memory grows with the length, not with its square") {
  const auto peak = [](i64 T, bool biased) {
    const Variable qkv = parameter(normal({1, T, 3 * 8}, 5, f32));
    const Variable bias = biased ? parameter(normal({1, 2 * T - 1}, 6, f32)) : Variable();
    reset_peak();
    const i64 before = memory_counters().live_bytes;
    const Variable y = packed_attention(qkv, {1, 8, 8}, biased ? Mask() : Mask::causal(), {.bias = bias});
    backward(y, full(y.shape(), 1.0));
    return static_cast<double>(memory_counters().peak_bytes - before);
  };
  if (!counts_memory()) return;
  for (const bool biased : {false, true}) {
    const double shorter = peak(1024, biased);
    CHECK(peak(2048, biased) < 2.2 * shorter);
  }
}
