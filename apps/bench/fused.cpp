// Chapter 9. The two forms of each fused operation, and their times.
//
// Serves: core/machine/parallel.h
#include "apps/bench/fused.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/bench/bench.h"
#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/machine.h"
#include "apps/program/stopwatch.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/machine/memory.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/layers/attentive_gru.h"

namespace orrery {
namespace {

constexpr double drop_rate = 0.1, seconds_for_a_form = 0.4;
constexpr size_t fused_width = 22, parts_width = 37;

Variable random_leaf(const Shape& shape, Rng& rng) { return parameter(rand_uniform(shape, -1, 1, rng)); }

// -1 / N sum over n and k of q_nk log softmax(x)_nk, with label smoothing.
Variable composed_cross_entropy(const Variable& logits, const Tensor& q, double tokens) {
  return scale(sum(mul(log_softmax(logits), constant(q))), -1.0 / tokens);
}

// Q, K and V are cut out of the packed product, each as a copy; then the heads are joined again.
Variable composed_attention(const Variable& qkv, i64 num_heads, const Draw& draw) {
  const i64 B = qkv.size(0), T = qkv.size(1), d_model = qkv.size(2) / 3;
  const auto heads = [=](const Variable& x) {
    return permute(reshape(x, {B, T, num_heads, d_model / num_heads}), {0, 2, 1, 3});
  };
  const std::array<Variable, 3> parts = split3(qkv, -1);
  const AttentionResult result =
      attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), Mask::causal(), {.p = drop_rate, .draw = draw});
  return reshape(permute(result.output, {0, 2, 1, 3}), {B, T, d_model});
}

// Every linear map has d_model units, and the memory is as long as the sequence.
FusedPair attentive_gru_pair(i64 B, i64 T, i64 d_model, Rng& rng) {
  const auto layer = std::make_shared<nn::AttentiveGru>(
      nn::AttentiveGruSizes{.in = d_model, .H = d_model, .M = d_model, .A = d_model}, rng);
  const Variable x = random_leaf({B, T, d_model}, rng), s0 = random_leaf({B, d_model}, rng),
                 memory = random_leaf({B, T, d_model}, rng);
  std::vector<Variable> leaves{x, s0, memory};
  for (const NamedParameter& parameter : layer->parameters()) leaves.push_back(parameter.value);
  const auto states = [=](bool composed) {
    const Variable keys = layer->key(memory);
    return (composed ? layer->composed(x, s0, memory, keys, {}) : (*layer)(x, s0, memory, keys, {})).states;
  };
  return {"attentive_gru", "attention and gates, step by step", leaves, [=] { return states(true); },
          [=] { return states(false); }};
}

double seconds_of_form(const FusedPair& pair, const std::function<Variable()>& form) {
  const Tensor dy = full(form().shape(), 1.0);
  return fastest_seconds(
      seconds_for_a_form, [&] { backward(form(), dy); },
      [&] {
        for (Variable leaf : pair.leaves) leaf.clear_gradient();
      });
}

i64 bytes_held_by(const std::function<Variable()>& form) {
  const i64 before = memory_counters().live_bytes;
  const Variable y = form();
  return memory_counters().live_bytes - before;
}

}  // namespace

std::vector<FusedPair> fused_pairs(const BenchConfig& c) {
  const i64 B = c.batch, T = c.target_length, tokens = B * T, words = c.vocab_size, d_model = c.d_model,
            h = c.num_heads, d_head = c.d_head();
  Rng rng(1);
  const Draw draw{.seed = 1};
  const Variable x = random_leaf({tokens, d_model}, rng), f = random_leaf({tokens, d_model}, rng);
  const Variable W = random_leaf({c.d_ff, d_model}, rng), b = random_leaf({c.d_ff}, rng),
                 V = random_leaf({d_model, c.d_ff}, rng);
  const Variable gain = random_leaf({d_model}, rng), shift = random_leaf({d_model}, rng);
  const Variable table = random_leaf({words, d_model}, rng), logits = random_leaf({tokens, words}, rng);
  const Variable positions = constant(rand_uniform({T, d_model}, -1, 1, rng));
  const Variable qkv = random_leaf({B, T, 3 * d_model}, rng);
  const Tensor ids = randint(0, words, {B, T}, rng), targets = randint(0, words, {tokens}, rng);
  Tensor q = full({tokens, words}, 0.1 / static_cast<double>(words));
  for (i64 i = 0; i < tokens; ++i) q.write<float>()[i * words + targets.data<i32>()[i]] += 0.9F;
  const auto z = [=] { return add(matmul(x, W, Trans::b), b); };
  return {
      {"linear", "matmul + bias", {x, W, b}, z, [=] { return linear(x, W, b); }},
      {"linear_relu",
       "matmul + bias, relu, dropout",
       {x, W, b},
       [=] { return dropout(relu(z()), drop_rate, draw); },
       [=] { return linear_relu(x, W, b, drop_rate, draw); }},
      {"linear_cross_entropy",
       "linear, cross_entropy",
       {x, table},
       [=] { return cross_entropy(linear(x, table, {}), targets, {.label_smoothing = 0.1}); },
       [=] { return linear_cross_entropy(x, table, {}, targets, {.label_smoothing = 0.1}); }},
      {"gelu_feed_forward",
       "linear, gelu, linear",
       {x, W, b, V, shift},
       [=] { return linear(gelu(linear(x, W, b)), V, shift); },
       [=] { return gelu_feed_forward(x, W, b, V, shift); }},
      {"residual",
       "x + dropout(f)",
       {x, f},
       [=] { return add(x, dropout(f, drop_rate, draw)); },
       [=] { return residual(x, f, drop_rate, draw); }},
      {"residual_norm",
       "layer_norm(x + dropout(f))",
       {x, f, gain, shift},
       [=] { return layer_norm(add(x, dropout(f, drop_rate, draw)), gain, shift); },
       [=] { return residual_norm(x, f, gain, shift, {.p = drop_rate, .draw = draw}); }},
      {"embedding_sum",
       "dropout(8 embedding + positions)",
       {table},
       [=] { return dropout(add(scale(embedding(table, ids), 8.0), positions), drop_rate, draw); },
       [=] { return embedding_sum(table, ids, 8.0, positions, drop_rate, draw); }},
      {"packed_attention",
       "split, permute, attention, permute",
       {qkv},
       [=] { return composed_attention(qkv, h, draw); },
       [=] {
         return packed_attention(qkv, {h, d_head, d_head}, Mask::causal(), {.p = drop_rate, .draw = draw});
       }},
      {"cross_entropy",
       "-sum(q log_softmax), label smoothing",
       {logits},
       [=] { return composed_cross_entropy(logits, q, static_cast<double>(tokens)); },
       [=] { return cross_entropy(logits, targets, {.label_smoothing = 0.1}); }},
      attentive_gru_pair(B, T, d_model, rng),
  };
}

FusedTimes measure_pair(const FusedPair& pair) {
  return {.name = pair.name,
          .composed_of = pair.composed_of,
          .composed = seconds_of_form(pair, pair.composed),
          .fused = seconds_of_form(pair, pair.fused),
          .composed_bytes = bytes_held_by(pair.composed),
          .fused_bytes = bytes_held_by(pair.fused)};
}

void print_fused(std::ostream& out, const std::vector<FusedTimes>& rows) {
  out << fitted("fused", fused_width) << fitted("composed", parts_width)
      << "composed ms fused ms times    MB MB fused\n";
  for (const FusedTimes& row : rows) {
    out << fitted(row.name, fused_width) << fitted(row.composed_of, parts_width)
        << numbers("%11.2f%9.2f%6.1f", 1e3 * row.composed, 1e3 * row.fused, row.composed / row.fused)
        << numbers("%6.1f%9.1f\n", static_cast<double>(row.composed_bytes) / 1e6,
                   static_cast<double>(row.fused_bytes) / 1e6);
  }
}

int bench_fused(const BenchOptions& options) {
  announce(options);
  const BenchConfig& config = bench_config(options.config);
  std::vector<FusedTimes> rows;
  for (const FusedPair& pair : fused_pairs(config)) rows.push_back(measure_pair(pair));
  print_fused(std::cout, rows);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const FusedTimes& row : rows)
    results.push_back({{"name", row.name},
                       {"composed_ms", 1e3 * row.composed},
                       {"fused_ms", 1e3 * row.fused},
                       {"composed_bytes", row.composed_bytes},
                       {"fused_bytes", row.fused_bytes}});
  write_results(options, "fused", {{"config", as_json(config)}, {"rows", results}});
  return done;
}

}  // namespace orrery
