// Chapter 8. Every function of autograd/ops.h with shapes drawn at random, most of them cut into several chunks.
#pragma once

#include "tests/promises/random_calls.h"
#include "tests/promises/random_fused.h"
#include "tests/promises/random_sequences.h"

namespace orrery::promises {
using namespace kernels;

/// f of one input of any shape.
template <class F> RandomOperation unary(std::string name, F f, bool positive = false) {
  return {std::move(name), [=](Rng& rng) -> Call {
            return {{{draw_shape(rng), positive}}, [f](const Variables& x) { return f(x[0]); }};
          }};
}

/// f of two inputs that broadcast.
template <class F> RandomOperation binary(std::string name, F f, bool second_positive = false) {
  return {std::move(name), [=](Rng& rng) -> Call {
            const Shape shape = draw_shape(rng);
            return {{{draw_operand(rng, shape)}, {draw_operand(rng, shape), second_positive}},
                    [f](const Variables& x) { return f(x[0], x[1]); }};
          }};
}

/// f over axes.
template <class F> RandomOperation reduction(std::string name, F f) {
  return {std::move(name), [=](Rng& rng) -> Call {
            const Shape shape = draw_shape(rng);
            const Axes axes = draw_axes(rng, shape.rank());
            const bool keep = rng.integer(0, 2) == 0;
            return {{{shape}}, [=](const Variables& x) { return f(x[0], axes, keep); }};
          }};
}

inline void add_elementwise(std::vector<RandomOperation>& table) {
  using V = const Variable&;
  table.push_back(binary("add", [](V a, V b) { return add(a, b); }));
  table.push_back(binary("sub", [](V a, V b) { return sub(a, b); }));
  table.push_back(binary("mul", [](V a, V b) { return mul(a, b); }));
  table.push_back(binary(
      "div", [](V a, V b) { return div(a, b); }, true));
  table.push_back(unary("neg", [](V x) { return neg(x); }));
  table.push_back(unary("scale", [](V x) { return scale(x, 0.7); }));
  table.push_back(unary("shift", [](V x) { return shift(x, 0.7); }));
  table.push_back(unary(
      "pow", [](V x) { return pow(x, 1.7); }, true));
  table.push_back(unary("exp", [](V x) { return exp(x); }));
  table.push_back(unary(
      "log", [](V x) { return log(x); }, true));
  table.push_back(unary(
      "sqrt", [](V x) { return sqrt(x); }, true));
  table.push_back(unary("tanh", [](V x) { return tanh(x); }));
  table.push_back(unary("sigmoid", [](V x) { return sigmoid(x); }));
  table.push_back(unary("relu", [](V x) { return relu(x); }));
  table.push_back(unary("gelu", [](V x) { return gelu(x); }));
  table.push_back(unary("gelu_tanh", [](V x) { return gelu_tanh(x); }));
  table.push_back(unary("silu", [](V x) { return silu(x); }));
  table.push_back(unary("softplus", [](V x) { return softplus(x); }));
  table.push_back(unary("elu", [](V x) { return elu(x, 0.7); }));
  table.push_back(unary("abs", [](V x) { return abs(x); }));
  table.push_back(unary("clamp", [](V x) { return clamp(x, -0.5, 0.7); }));
  table.push_back(unary("sin", [](V x) { return sin(x); }));
  table.push_back(unary("cos", [](V x) { return cos(x); }));
  table.push_back(unary("normalize", [](V x) { return normalize(x); }));
  table.push_back(binary("where", [](V a, V b) {
    return where(broadcast_to(a.value(), broadcast(a.shape(), b.shape(), "where")) > 0, a, b);
  }));
  const auto add_loss = [&](const std::string& name, auto loss) {
    table.push_back(unary(name, [=](V x) { return loss(x, sigmoid(constant(x.value() * 3.0)).value()); }));
  };
  add_loss("mse", [](V x, const Tensor& t) { return mse(x, t); });
  add_loss("bce_with_logits", [](V x, const Tensor& t) { return bce_with_logits(x, t); });
  add_loss("kl_divergence", [](V x, const Tensor& t) { return kl_divergence(x, t); });
  table.push_back(unary("softmax", [](V x) { return softmax(x); }));
  table.push_back(unary("log_softmax", [](V x) { return log_softmax(x); }));
  table.push_back(unary("rms_norm", [](V x) { return rms_norm(x); }));
  const auto over = [](auto f) { return [f](V x, const Axes& axes, bool keep) { return f(x, axes, keep); }; };
  table.push_back(reduction("sum", over([](V x, const Axes& axes, bool keep) { return sum(x, axes, keep); })));
  table.push_back(reduction("mean", over([](V x, const Axes& axes, bool keep) { return mean(x, axes, keep); })));
  table.push_back(reduction("max", over([](V x, const Axes& axes, bool keep) { return max(x, axes, keep); })));
  table.push_back(reduction("min", over([](V x, const Axes& axes, bool keep) { return min(x, axes, keep); })));
  table.push_back(
      reduction("variance", over([](V x, const Axes& axes, bool keep) { return variance(x, axes, keep, 0); })));
  table.push_back(
      reduction("log_sum_exp", over([](V x, const Axes& axes, bool keep) { return log_sum_exp(x, axes, keep); })));
}

inline void add_layout(std::vector<RandomOperation>& table) {
  table.push_back(unary("reshape", [](const Variable& x) { return reshape(x, {-1}); }));
  table.push_back({"permute", [](Rng& rng) -> Call {
                     const Shape shape = draw_shape(rng);
                     std::vector<i64> order(static_cast<size_t>(shape.rank()));
                     for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<i64>(i);
                     for (size_t i = order.size(); i > 1; --i)
                       std::swap(order[i - 1], order[static_cast<size_t>(rng.integer(0, static_cast<i64>(i)))]);
                     return {{{shape}}, [=](const Variables& x) { return permute(x[0], order); }};
                   }});
  table.push_back({"concat", [](Rng& rng) -> Call {
                     const Shape shape = draw_shape(rng);
                     const int axis = static_cast<int>(rng.integer(0, shape.rank()));
                     return {{{shape}, {shape.with(axis, 1)}, {shape.with(axis, shape[axis] / 2)}},
                             [=](const Variables& x) { return concat(x, axis); }};
                   }});
  table.push_back({"slice", [](Rng& rng) -> Call {
                     const Shape shape = draw_shape(rng);
                     const int axis = static_cast<int>(rng.integer(0, shape.rank()));
                     const i64 begin = rng.integer(0, shape[axis]), end = rng.integer(begin, shape[axis]) + 1;
                     return {{{shape}}, [=](const Variables& x) { return slice(x[0], axis, begin, end); }};
                   }});
  // f(x, axis, ids), with ids for `gather` along the axis.
  const auto by_ids = [&](const std::string& name, auto f) {
    table.push_back({name, [f](Rng& rng) -> Call {
                       const Shape shape = draw_shape(rng);
                       const int axis = static_cast<int>(rng.integer(0, shape.rank()));
                       const Tensor ids = draw_ids(rng, shape[axis], shape);
                       return {{{shape}}, [=](const Variables& x) { return f(x[0], axis, ids); }};
                     }});
  };
  using V = const Variable&;
  by_ids("gather", [](V x, int axis, const Tensor& ids) { return gather(x, axis, ids); });
  by_ids("scatter", [](V x, int axis, const Tensor& ids) { return scatter(x, axis, ids, x, true); });
  table.push_back({"index_rows", [](Rng& rng) -> Call {
                     const Shape shape = draw_shape(rng);
                     const Tensor ids = draw_ids(rng, shape[0], {shape[0]});
                     return {{{shape}}, [=](const Variables& x) { return index_rows(x[0], ids); }};
                   }});
  by_ids("cumulative_sum", [](V x, int axis, const Tensor&) { return cumulative_sum(x, axis); });
  by_ids("select", [](V x, int axis, const Tensor&) { return select(concat({x, x}, axis), axis, x.size(axis)); });
  by_ids("broadcast_to", [](V x, int axis, const Tensor&) { return broadcast_to(slice(x, axis, 0, 1), x.shape()); });
  // What comes out of a split is joined again in another order, so that each part has a gradient of its own.
  table.push_back({"split", [](Rng& rng) -> Call {
                     const Shape shape = draw_shape(rng);
                     const int axis = static_cast<int>(rng.integer(0, shape.rank()));
                     const i64 size = rng.integer(0, shape[axis] + 1);
                     return {{{shape}}, [=](const Variables& x) {
                               const auto [left, right] = split(x[0], size, axis);
                               return concat({right, left}, axis);
                             }};
                   }});
  table.push_back({"split3", [](Rng& rng) -> Call {
                     const Shape shape = draw_shape(rng);
                     const int axis = static_cast<int>(rng.integer(0, shape.rank()));
                     return {{{shape.with(axis, (shape[axis] + 2) / 3 * 3)}}, [=](const Variables& x) {
                               const auto [q, k, v] = split3(x[0], axis);
                               return concat({v, q, k}, axis);
                             }};
                   }});
}

inline void add_layers(std::vector<RandomOperation>& table) {
  table.push_back({"embedding", [](Rng& rng) -> Call {
                     const i64 columns = rng.integer(1, 200), rows = rng.integer(1, 300);
                     const Tensor ids = draw_ids(rng, rows, {draw_count(rng) / columns});
                     return {{{{rows, columns}}}, [=](const Variables& x) { return embedding(x[0], ids); }};
                   }});
  table.push_back({"layer_norm", [](Rng& rng) -> Call {
                     const i64 n = rng.integer(2, 300), rows = std::max<i64>(1, draw_count(rng) / n);
                     const auto form = static_cast<LayerNormForm>(rng.integer(0, 3));
                     return {{{{rows, n}}, {{n}}, {{n}}},
                             [=](const Variables& x) { return layer_norm(x[0], x[1], x[2], 1e-5, form); }};
                   }});
  table.push_back({"dropout", [](Rng& rng) -> Call {
                     const double p = rng.uniform();
                     const Draw draw{.seed = rng.bits64(), .step = static_cast<u32>(rng.bits64())};
                     return {{{draw_shape(rng)}}, [=](const Variables& x) { return dropout(x[0], p, draw); }};
                   }});
  table.push_back({"cross_entropy", [](Rng& rng) -> Call {
                     const i64 K = rng.integer(2, 400), rows = std::max<i64>(1, draw_count(rng) / K);
                     const Tensor targets = draw_ids(rng, K, {rows});
                     const CrossEntropyOptions options{.ignore_index = 0, .label_smoothing = 0.1 * rng.uniform()};
                     return {{{{rows, K}}}, [=](const Variables& x) { return cross_entropy(x[0], targets, options); }};
                   }});
  table.push_back({"masked_softmax", [](Rng& rng) -> Call {
                     const i64 B = rng.integer(1, 5), h = rng.integer(1, 5), n = rng.integer(1, 110),
                               m = rng.integer(1, 110);
                     const Mask mask = draw_mask(rng, B, h, n, m);
                     return {{{{B, h, n, m}}}, [=](const Variables& x) { return masked_softmax(x[0], mask); }};
                   }});
  table.push_back({"by_distance", [](Rng& rng) -> Call {
                     const i64 h = rng.integer(1, 9), n = rng.integer(1, 110), m = rng.integer(1, 110);
                     return {{{{h, n + m - 1}}}, [=](const Variables& x) { return by_distance(x[0], n, m); }};
                   }});
  table.push_back({"zero_padding", [](Rng& rng) -> Call {
                     const i64 B = rng.integer(1, 7), h = rng.integer(1, 5), m = rng.integer(1, 110),
                               d = rng.integer(1, 110);
                     const Mask mask = draw_padding(rng, B, m);
                     return {{{{B, h, m, d}}}, [=](const Variables& x) { return zero_padding(x[0], mask); }};
                   }});
}

inline void add_products(std::vector<RandomOperation>& table) {
  table.push_back({"matmul", [](Rng& rng) -> Call {
                     const i64 m = rng.integer(1, 160), n = rng.integer(1, 160), k = rng.integer(1, 160);
                     const Trans trans = std::array{Trans::none, Trans::a, Trans::b, Trans::both}.at(
                         static_cast<size_t>(rng.integer(0, 4)));
                     const i64 batch = rng.integer(0, 3) == 0 ? rng.integer(1, 6) : 0;
                     const bool shared = batch == 0 || (!transposes_a(trans) && rng.integer(0, 2) == 0);
                     const Shape a = transposes_a(trans) ? Shape{k, m} : Shape{m, k};
                     const Shape b = transposes_b(trans) ? Shape{n, k} : Shape{k, n};
                     const auto batched = [&](const Shape& s) { return Shape{batch, s[0], s[1]}; };
                     return {{{batch == 0 ? a : batched(a)}, {shared ? b : batched(b)}},
                             [=](const Variables& x) { return matmul(x[0], x[1], trans); },
                             batch > 0 && !shared ? batch : gemm_tiles(m * std::max<i64>(1, batch), n, k, trans)};
                   }});
  table.push_back({"rotary", [](Rng& rng) -> Call {
                     const i64 B = rng.integer(1, 5), n = rng.integer(1, 120), h = rng.integer(1, 5),
                               half = rng.integer(1, 40);
                     const Tensor sine = randn({n, half}, rng), cosine = randn({n, half}, rng);
                     return {{{{B, n, h, 2 * half}}}, [=](const Variables& x) {
                               return rotary(x[0], sine.to(x[0].dtype()), cosine.to(x[0].dtype()));
                             }};
                   }});
  table.push_back(
      {"attention", [](Rng& rng) -> Call {
         const i64 B = rng.integer(1, 5), h = rng.integer(1, 5), n = rng.integer(1, 50), m = rng.integer(1, 50);
         const i64 d_k = rng.integer(1, 20), d_v = rng.integer(1, 20);
         const Mask mask = draw_mask(rng, B, h, n, m);
         const double p = rng.integer(0, 2) == 0 ? 0.0 : 0.2;
         const Draw draw{.seed = rng.bits64()};
         return {{{{B, h, n, d_k}}, {{B, h, m, d_k}}, {{B, h, m, d_v}}},
                 [=](const Variables& x) { return attention(x[0], x[1], x[2], mask, {.p = p, .draw = draw}).output; },
                 B * h};
       }});
}

/// All of them.
inline std::vector<RandomOperation> random_operations() {
  std::vector<RandomOperation> table;
  add_elementwise(table);
  add_layout(table);
  add_layers(table);
  add_products(table);
  add_fused(table);
  add_convolutions(table);
  return table;
}

}  // namespace orrery::promises
