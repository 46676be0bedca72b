// Chapter 8. The fused functions of autograd/ops.h with shapes drawn at random.
#pragma once

#include "tests/promises/random_calls.h"

namespace orrery::promises {

inline double draw_probability(Rng& rng) { return rng.integer(0, 2) == 0 ? 0.0 : 0.5 * rng.uniform(); }

/// f(x, weight, bias, p, draw) of a linear map with what follows it.
template <class F> RandomOperation linear_map(std::string name, F f) {
  return {std::move(name), [=](Rng& rng) -> Call {
            const i64 m = rng.integer(1, 200), out = rng.integer(1, 160), in = rng.integer(1, 160);
            const double p = draw_probability(rng);
            const Draw draw{.seed = rng.bits64()};
            std::vector<Input> inputs{{{m, in}}, {{out, in}}};
            if (rng.integer(0, 4) > 0) inputs.push_back({{out}});
            return {inputs,
                    [=](const Variables& x) { return f(x[0], x[1], x.size() > 2 ? x[2] : Variable(), p, draw); },
                    gradient_tiles(m, out, in)};
          }};
}

inline void add_fused_products(std::vector<RandomOperation>& table) {
  using V = const Variable&;
  table.push_back(linear_map("linear", [](V x, V weight, V bias, double p, const Draw&) {
    const i64 out = weight.size(0);
    // linear has no dropout: p decides whether all rows of the weight are used, or some.
    return linear(x, weight, bias, p == 0 ? RowRange{} : RowRange{out / 3, out - out / 4});
  }));
  table.push_back(linear_map("linear_relu", [](V x, V weight, V bias, double p, const Draw& draw) {
    return linear_relu(x, weight, bias, p, draw);
  }));
  for (const bool tanh : {false, true}) {
    table.push_back({tanh ? "gelu_tanh_feed_forward" : "gelu_feed_forward", [tanh](Rng& rng) -> Call {
                       const i64 rows = rng.integer(1, 200), in = rng.integer(1, 100), inner = rng.integer(1, 200),
                                 out = rng.integer(1, 100);
                       const double p = draw_probability(rng);
                       const Draw draw{.seed = rng.bits64()};
                       return {{{{rows, in}}, {{inner, in}}, {{inner}}, {{out, inner}}, {{out}}},
                               [=](const Variables& x) {
                                 return (tanh ? gelu_tanh_feed_forward : gelu_feed_forward)(x[0], x[1], x[2], x[3],
                                                                                            x[4], p, draw);
                               },
                               gradient_tiles(rows, inner, in)};
                     }});
  }
}

inline void add_fused_losses(std::vector<RandomOperation>& table) {
  table.push_back({"linear_cross_entropy", [](Rng& rng) -> Call {
                     const i64 rows = rng.integer(1, 200), K = rng.integer(2, 200), d = rng.integer(1, 100);
                     const Tensor targets = draw_ids(rng, K, {rows});
                     const CrossEntropyOptions options{.ignore_index = 0, .label_smoothing = 0.1 * rng.uniform()};
                     std::vector<Input> inputs{{{rows, d}}, {{K, d}}};
                     if (rng.integer(0, 4) > 0) inputs.push_back({{K}});
                     return {inputs,
                             [=](const Variables& x) {
                               return linear_cross_entropy(x[0], x[1], x.size() > 2 ? x[2] : Variable(), targets,
                                                           options);
                             },
                             gradient_tiles(rows, K, d)};
                   }});
}

inline void add_fused_sums(std::vector<RandomOperation>& table) {
  table.push_back({"residual", [](Rng& rng) -> Call {
                     const Shape shape = draw_shape(rng);
                     const double p = draw_probability(rng);
                     const Draw draw{.seed = rng.bits64()};
                     return {{{shape}, {shape}}, [=](const Variables& x) { return residual(x[0], x[1], p, draw); }};
                   }});
  table.push_back({"residual_norm", [](Rng& rng) -> Call {
                     const i64 n = rng.integer(2, 300), rows = std::max<i64>(1, draw_count(rng) / n);
                     const auto form = static_cast<LayerNormForm>(rng.integer(0, 3));
                     const double p = draw_probability(rng);
                     const Draw draw{.seed = rng.bits64()};
                     return {{{{rows, n}}, {{rows, n}}, {{n}}, {{n}}}, [=](const Variables& x) {
                               return residual_norm(x[0], x[1], x[2], x[3], {.form = form, .p = p, .draw = draw});
                             }};
                   }});
  table.push_back({"embedding_sum", [](Rng& rng) -> Call {
                     const i64 columns = rng.integer(1, 200), rows = rng.integer(1, 300), T = rng.integer(1, 40);
                     const Tensor ids = draw_ids(rng, rows, {draw_count(rng) / columns / T, T});
                     const double p = draw_probability(rng);
                     const Draw draw{.seed = rng.bits64()};
                     return {{{{rows, columns}}, {{T + rng.integer(0, 3), columns}}},
                             [=](const Variables& x) { return embedding_sum(x[0], ids, 1.7, x[1], p, draw); }};
                   }});
}

inline void add_fused_attention(std::vector<RandomOperation>& table) {
  table.push_back(
      {"packed_attention", [](Rng& rng) -> Call {
         const i64 B = rng.integer(1, 5), h = rng.integer(1, 5);
         const i64 d_k = rng.integer(1, 20), d_v = rng.integer(1, 20);
         const bool self = rng.integer(0, 2) == 0;
         const i64 most = rng.integer(0, 8) == 0 ? 300 : 50;  // some with several tiles of queries
         const bool in_tiles = !self && rng.integer(0, 8) == 0;
         const i64 n = rng.integer(1, most), m = self ? n : (in_tiles ? 513 : 1) + rng.integer(0, 50);
         const Mask mask = draw_mask(rng, B, h, n, m);
         const double p = draw_probability(rng);
         const Draw draw{.seed = rng.bits64()};
         std::vector<Input> inputs{{{B, n, h * d_k}}, {{B, m, h * (d_k + d_v)}}};
         if (self) inputs = {{{B, n, h * (2 * d_k + d_v)}}};
         const bool biased = rng.integer(0, 3) == 0;
         if (biased) inputs.push_back({{h, n + m - 1}});
         return {inputs,
                 [=](const Variables& x) {
                   const Variable bias = biased ? x.back() : Variable();
                   return self
                              ? packed_attention(x[0], {h, d_k, d_v}, mask, {.bias = bias, .p = p, .draw = draw})
                              : packed_attention(x[0], x[1], {h, d_k, d_v}, mask, {.bias = bias, .p = p, .draw = draw});
                 },
                 B * h};
       }});
}

inline void add_fused(std::vector<RandomOperation>& table) {
  add_fused_products(table);
  add_fused_losses(table);
  add_fused_sums(table);
  add_fused_attention(table);
}

}  // namespace orrery::promises
