// Chapter 8. The feed-forward network as one operation against linear, gelu, dropout and linear one after another.
#include "autograd/check/scheduling.h"
#include "core/kernels/reduce.h"
#include "core/machine/memory.h"
#include "tests/autograd/ops/fused.h"

using namespace orrery;
using namespace orrery::small;

namespace {

constexpr Draw inner_draw{.seed = 4, .step = 2, .micro = 1, .index = 7};

// x, W1, b1, W2, b2 of five inputs, or of x, W1, W2.
std::array<Variable, 5> five_of(const Variables& x) {
  if (x.size() == 5) return {x[0], x[1], x[2], x[3], x[4]};
  return {x[0], x[1], Variable(), x[2], Variable()};
}

Variable fused_feed_forward(const Variables& inputs, bool tanh, double p) {
  const auto [x, W1, b1, W2, b2] = five_of(inputs);
  return tanh ? gelu_tanh_feed_forward(x, W1, b1, W2, b2, p, inner_draw)
              : gelu_feed_forward(x, W1, b1, W2, b2, p, inner_draw);
}

Variable composed_feed_forward(const Variables& inputs, bool tanh, double p) {
  const auto [x, W1, b1, W2, b2] = five_of(inputs);
  const Variable z = linear(x, W1, b1);
  return linear(dropout(tanh ? gelu_tanh(z) : gelu(z), p, inner_draw), W2, b2);
}

struct FeedForwardSizes {
  Shape leading;
  i64 in, inner, out;
  std::vector<Shape> shapes(bool bias) const {
    if (!bias) return {leading.plus(in), {inner, in}, {out, inner}};
    return {leading.plus(in), {inner, in}, {inner}, {out, inner}, {out}};
  }
};

// Three chunks of rows in f64, two in f32; the last is shorter.
const FeedForwardSizes in_chunks{{601}, 3, 4200, 2};

}  // namespace

TEST_CASE("the feed-forward network equals linear, gelu, dropout, linear: the same elements are dropped") {
  for (const FeedForwardSizes& s :
       {FeedForwardSizes{{1}, 1, 1, 1}, {{}, 3, 2, 4}, {{5}, 7, 13, 6}, {{2, 3}, 9, 16, 9}, {{7, 43}, 37, 51, 20}}) {
    for (const bool bias : {false, true}) {
      for (const bool tanh : {false, true}) {
        for (const double p : {0.0, 0.3}) {
          INFO(s.leading.plus(s.in), " ", s.inner, " ", s.out, " ", bias, " ", tanh, " ", p);
          check_fused([=](const Variables& x) { return fused_feed_forward(x, tanh, p); },
                      [=](const Variables& x) { return composed_feed_forward(x, tanh, p); }, normals(s.shapes(bias)));
        }
      }
    }
  }
}

TEST_CASE("in several chunks of rows it equals linear, gelu, dropout, linear, and has equal bits for any threads") {
  CHECK(kernels::row_chunk(601, in_chunks.inner, f64) == 201);
  CHECK(kernels::row_chunk(601, in_chunks.inner, f32) == 301);
  const auto fused = [](const Variables& x) { return fused_feed_forward(x, true, 0.2); };
  CHECK(same_for_any_threads([&] { return value_and_gradients(fused, normals(in_chunks.shapes(true), f32)); }));
  check_fused([](const Variables& x) { return fused_feed_forward(x, false, 0.3); },
              [](const Variables& x) { return composed_feed_forward(x, false, 0.3); }, normals(in_chunks.shapes(true)));
}

TEST_CASE("one parameter may be x, both weights and both biases, in several chunks") {
  constexpr i64 n = 1120;
  CHECK(kernels::row_chunk(n, n, f64) < n);
  const auto five = [](const Variables& x) { return Variables{x[0], x[0], x[1], x[0], x[1]}; };
  const std::vector<Tensor> inputs{normal({n, n}, 1) * 0.05, normal({n}, 2)};
  CHECK(distance(value_then_gradients([&](const auto& x) { return fused_feed_forward(five(x), false, 0); }, inputs),
                 value_then_gradients([&](const auto& x) { return composed_feed_forward(five(x), false, 0); },
                                      inputs)) <= 1e-12);
}

TEST_CASE("a feed-forward network that is not recorded has the same bits") {
  for (const FeedForwardSizes& s : {FeedForwardSizes{{3}, 61, 1030, 9}, {{40}, 61, 1030, 9}, in_chunks}) {
    const std::vector<Tensor> inputs = normals(s.shapes(true), f32);
    const auto run = [&](const auto& make) {
      Variables x;
      for (const Tensor& input : inputs) x.push_back(make(input));
      return fused_feed_forward(x, false, 0.4).value();
    };
    const Tensor recorded = run([](const Tensor& t) { return parameter(t); });
    CHECK(same_bits(run([](const Tensor& t) { return constant(t); }), recorded));
    const GrainScope smallest(1);
    CHECK(same_bits(run([](const Tensor& t) { return constant(t); }), recorded));
  }
}

TEST_CASE("the feed-forward network keeps one tensor of the inner size, and nothing when it is not recorded") {
  const i64 rows = 512, d_model = 8, d_ff = 1024, inner = rows * d_ff * 4;
  const std::vector<Tensor> inputs =
      normals({{rows, d_model}, {d_ff, d_model}, {d_ff}, {d_model, d_ff}, {d_model}}, f32);
  const auto kept = [&](const auto& make) {
    Variables x;
    for (const Tensor& input : inputs) x.push_back(make(input));
    const i64 before = memory_counters().live_bytes;
    const Variable y = fused_feed_forward(x, false, 0);
    return memory_counters().live_bytes - before;
  };
  const i64 recorded = kept([](const Tensor& t) { return parameter(t); });
  const i64 plain = kept([](const Tensor& t) { return constant(t); });
  if (small::counts_memory()) {
    CHECK(recorded >= inner);
    CHECK(recorded < inner + inner / 10);
    CHECK(plain < inner / 10);
  }
}

TEST_CASE("NaN passes through a feed-forward network, and stays in its row") {
  Tensor x = normal({2, 3});
  x.write<double>()[4] = std::nan("");
  const Tensor y =
      gelu_feed_forward(constant(x), constant(normal({5, 3}, 2)), {}, constant(normal({2, 5}, 3)), {}).value();
  for (i64 i = 0; i < 2; ++i) {
    CHECK_FALSE(std::isnan(y.at(i)));
    CHECK(std::isnan(y.at(2 + i)));
  }
}

TEST_CASE("errors of the feed-forward network name the operation and the rule") {
  const Variable x = parameter(zeros({2, 3}), "x"), W1 = constant(zeros({5, 3})), W2 = constant(zeros({2, 5})),
                 wide = constant(zeros({2, 4}));
  CHECK(contains(error_of([&] { (void)gelu_feed_forward(x, wide, {}, W2, {}); }),
                 "gelu_feed_forward: inner sizes differ (3 != 4)\n  input 0: [2, 3]  from parameter x"));
  CHECK(contains(error_of([&] { (void)gelu_tanh_feed_forward(x, W1, {}, wide, {}); }),
                 "gelu_tanh_feed_forward: inner sizes differ (5 != 4)"));
  CHECK(contains(error_of([&] { (void)gelu_feed_forward(x, W1, W2, W2, {}); }), "the bias needs shape [5]"));
  CHECK(contains(error_of([&] { (void)gelu_feed_forward(x, W1, {}, W2, x); }), "the bias needs shape [2]"));
  CHECK(contains(error_of([&] { (void)gelu_feed_forward(x, W1, {}, W2, {}, 1.5); }), "needs a probability in [0, 1]"));
}
