// Chapter 8. Every operation with dropout refuses a micro-batch that its random numbers cannot tell from another one.
#include <functional>
#include <map>

#include "autograd/ops/fused/attention/tiled_attention.h"
#include "core/mask.h"
#include "tests/autograd/ops/support.h"

using namespace orrery;
using namespace orrery::small;

TEST_CASE("a micro-batch of 65536 or more, which would draw what an earlier one drew, is refused by every operation") {
  const auto zero = [](const Shape& shape) { return constant(zeros(shape)); };
  const Variable x = zero({1, 2, 4}), W = zero({4, 4}), b = zero({4}), heads = zero({1, 1, 2, 4});
  const Variable qkv = zero({1, 2, 12}), kv = zero({1, 2, 8});
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
      {"packed_attention of two",
       [&](const Draw& draw) {
         packed_attention(x, kv, {1, 4, 4}, Mask(), {.p = 0.5, .draw = draw});
       }},
      {"tiled_attention",
       [&](const Draw& draw) {
         tiled_attention(qkv, {1, 4, 4}, Mask(), {.p = 0.5, .draw = draw});
       }},
      {"tiled_attention of two",
       [&](const Draw& draw) {
         tiled_attention(x, kv, {1, 4, 4}, Mask(), {.p = 0.5, .draw = draw});
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
