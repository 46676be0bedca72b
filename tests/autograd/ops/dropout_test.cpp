// Chapter 5. Dropout: the decisions of random.h, the same in backward, the mean kept; and every operation that has it.
#include <functional>
#include <map>

#include "autograd/ops/fused/attention/tiled_attention.h"
#include "core/mask.h"
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::kernels;
using namespace orrery::small;

namespace {
constexpr Draw draw{.seed = 9, .step = 3, .micro = 1, .index = 2};
}

TEST_CASE("dropout keeps what the decisions of the draw keep, forward and backward, in rows of any length") {
  const double p = 0.3;
  for (const Dtype dtype : {f32, f64}) {
    for (const i64 n : {1, 7, 8, 13, 24, 128, 600, 1030}) {
      const Shape shape{3, 2, n};
      const Variable x = parameter(full(shape, 2.0, dtype));
      const Variable y = dropout(x, p, draw);
      backward(y, full(shape, 1.0, dtype));
      i64 kept = 0;
      for (i64 i = 0; i < 6 * n; ++i) {  // a row takes whole blocks of 8 decisions
        const auto block = static_cast<u64>(i / n * ((n + 7) / 8) + i % n / 8);
        const u16 decision = decisions(draw, block)[static_cast<size_t>(i % n % 8)];
        const double factor = decision < keep_below(p) ? keep_scale(p) : 0.0;
        kept += factor != 0;
        REQUIRE(close(y.value().at(i), 2 * factor, 1e-7));
        REQUIRE(close(x.gradient().at(i), factor, 1e-7));
      }
      if (n >= 13) CHECK((kept > 3 * n && kept < 6 * n));
    }
  }
}

TEST_CASE("dropout keeps the mean, and another draw is another mask") {
  const Variable x = constant(full({400, 250}, 1.0));
  for (const double p : {0.1, 0.5, 0.9}) {
    const double deviation = std::sqrt(p / (1 - p) / 1e5);
    CHECK(std::fabs(mean(dropout(x, p, draw)).item() - 1) < 4 * deviation);
  }
  Draw next = draw;
  ++next.index;
  CHECK(same_bits(dropout(x, 0.5, draw).value(), dropout(x, 0.5, draw).value()));
  CHECK_FALSE(same_bits(dropout(x, 0.5, draw).value(), dropout(x, 0.5, next).value()));
}

TEST_CASE("probabilities 0 and 1, nothing, and errors") {
  const Tensor x = normal({5, 3});
  CHECK(same_bits(dropout(constant(x), 0, draw).value(), x));
  CHECK(same_bits(gradient_of_sum([](const Variable& v) { return dropout(v, 0, draw); }, x), full({5, 3}, 1.0, f64)));
  CHECK(sum_of_squares(dropout(constant(x), 1, draw).value()) == 0);  // 0 with the sign of x
  CHECK(same_bits(gradient_of_sum([](const Variable& v) { return dropout(v, 1, draw); }, x), zeros({5, 3}, f64)));
  CHECK(dropout(constant(zeros({0, 3})), 0.5, draw).shape() == Shape{0, 3});
  CHECK(contains(error_of([&] { (void)dropout(constant(x), 1.5, draw); }),
                 "dropout: needs a probability in [0, 1], got 1.5\n  input 0: [5, 3]  from a constant"));
  for (const double p : {0.0, 0.5})
    CHECK(error_of([&, p] { (void)dropout(Variable(), p, draw); }) ==
          "dropout: the tensor is not defined\n  input 0: (none)");
}

TEST_CASE("promise 16: dropout masks have the same bits for 1 to 8 threads") {
  const Variable x = constant(full({303, 117}, 1.0));
  Tensor expected;
  for (int count = 1; count <= 8; ++count) {
    const Threads scope(count);
    const Tensor mask = dropout(x, 0.2, draw).value();
    if (count == 1) expected = mask;
    CHECK(same_bits(mask, expected));
  }
}

TEST_CASE("a micro-batch of 65536 or more, which would draw what an earlier one drew, is refused by every operation") {
  const auto zero = [](const Shape& shape) { return constant(zeros(shape)); };
  const Variable x = zero({1, 2, 4}), W = zero({4, 4}), b = zero({4}), heads = zero({1, 1, 2, 4});
  const Variable qkv = zero({1, 2, 12});
  const Tensor ids = Tensor::of<i32>({1, 2}, {0, 1});
  const std::map<std::string, std::function<void(const Draw&)>> operations{
      {"dropout", [&](const Draw& draw) { dropout(x, 0.5, draw); }},
      {"attention", [&](const Draw& draw) { attention(heads, heads, heads, Mask(), {.p = 0.5, .draw = draw}); }},
      {"embedding_sum",
       [&](const Draw& draw) {
         embedding_sum(W, ids, 1, zero({2, 4}), 0.5, draw);
       }},
      {"linear_relu", [&](const Draw& draw) { linear_relu(x, W, b, 0.5, draw); }},
      {"gelu_feed_forward", [&](const Draw& draw) { gelu_feed_forward(x, W, b, W, b, 0.5, draw); }},
      {"gelu_tanh_feed_forward", [&](const Draw& draw) { gelu_tanh_feed_forward(x, W, b, W, b, 0.5, draw); }},
      {"residual", [&](const Draw& draw) { residual(x, x, 0.5, draw); }},
      {"residual_norm", [&](const Draw& draw) { residual_norm(x, x, b, b, {.p = 0.5, .draw = draw}); }},
      {"packed_attention",
       [&](const Draw& draw) {
         packed_attention(qkv, {1, 4, 4}, Mask(), {.p = 0.5, .draw = draw});
       }},
      {"tiled_attention",
       [&](const Draw& draw) {
         tiled_attention(qkv, {1, 4, 4}, Mask(), {.p = 0.5, .draw = draw});
       }},
  };
  for (const auto& operation : operations) {
    const std::string& name = operation.first;
    const auto& run = operation.second;
    CAPTURE(name);
    CHECK_NOTHROW(run({.micro = 65535}));
    CHECK(contains(error_of([&] { run({.micro = 65536}); }), "needs a micro-batch below 65536, got 65536"));
  }
}
