// Chapter 9. The two forms of each fused operation, and their times.
#include "apps/measure/bench/fused.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/bench.h"
#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/stopwatch.h"
#include "apps/tasks/translate/rivals/attentive_gru.h"
#include "autograd/ops.h"
#include "core/machine/memory.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr double drop_rate = 0.1, smoothing = 0.1, seconds_for_a_form = 0.4;
constexpr size_t fused_width = 22, parts_width = 37;
const Draw dropout_draw{.seed = 1};

Variable random_leaf(const Shape& shape, Rng& rng) { return parameter(rand_uniform(shape, -1, 1, rng)); }

// Linear maps of x [tokens, d_model], and what follows them in a feed-forward network.
std::vector<FusedPair> feed_forward_pairs(const BenchConfig& c, Rng& rng) {
  const Variable x = random_leaf({c.target_tokens(), c.d_model}, rng);
  const Variable W1 = random_leaf({c.d_ff, c.d_model}, rng), b1 = random_leaf({c.d_ff}, rng);
  const Variable W2 = random_leaf({c.d_model, c.d_ff}, rng), b2 = random_leaf({c.d_model}, rng);
  const auto z = [=] { return add(matmul(x, W1, Trans::b), b1); };
  return {{"linear", "matmul + bias", {x, W1, b1}, z, [=] { return linear(x, W1, b1); }},
          {"linear_relu",
           "matmul + bias, relu, dropout",
           {x, W1, b1},
           [=] { return dropout(relu(z()), drop_rate, dropout_draw); },
           [=] { return linear_relu(x, W1, b1, drop_rate, dropout_draw); }},
          {"gelu_feed_forward",
           "linear, gelu, linear",
           {x, W1, b1, W2, b2},
           [=] { return linear(gelu(linear(x, W1, b1)), W2, b2); },
           [=] { return gelu_feed_forward(x, W1, b1, W2, b2); }}};
}

// Residual connections of x and f, the result of a sub-layer, both [tokens, d_model].
std::vector<FusedPair> residual_pairs(const BenchConfig& c, Rng& rng) {
  const Shape shape{c.target_tokens(), c.d_model};
  const Variable x = random_leaf(shape, rng), f = random_leaf(shape, rng);
  const Variable gain = random_leaf({c.d_model}, rng), shift = random_leaf({c.d_model}, rng);
  const auto summed = [=] { return add(x, dropout(f, drop_rate, dropout_draw)); };
  return {{"residual", "x + dropout(f)", {x, f}, summed, [=] { return residual(x, f, drop_rate, dropout_draw); }},
          {"residual_norm",
           "layer_norm(x + dropout(f))",
           {x, f, gain, shift},
           [=] { return layer_norm(summed(), gain, shift); },
           [=] { return residual_norm(x, f, gain, shift, {.p = drop_rate, .draw = dropout_draw}); }}};
}

// The rows of a table for tokens' ids [B, T], times 8 (any number does; in a model it is sqrt(d_model)), and a position
// added to each.
FusedPair embedding_pair(const BenchConfig& c, Rng& rng) {
  const Variable table = random_leaf({c.vocab_size, c.d_model}, rng);
  const Variable positions = constant(rand_uniform({c.target_length, c.d_model}, -1, 1, rng));
  const Tensor ids = randint(0, c.vocab_size, {c.batch, c.target_length}, rng);
  return {"embedding_sum",
          "dropout(8 embedding + positions)",
          {table},
          [=] { return dropout(add(scale(embedding(table, ids), 8.0), positions), drop_rate, dropout_draw); },
          [=] { return embedding_sum(table, ids, 8.0, positions, drop_rate, dropout_draw); }};
}

// Q, K and V are cut out of the packed product, each as a copy; then the heads are joined again.
Variable composed_attention(const Variable& qkv, i64 num_heads) {
  const i64 B = qkv.size(0), T = qkv.size(1), d_model = qkv.size(2) / 3;
  const auto heads = [=](const Variable& x) {
    return permute(reshape(x, {B, T, num_heads, d_model / num_heads}), {0, 2, 1, 3});
  };
  const std::array<Variable, 3> parts = split3(qkv, -1);
  const AttentionResult result = attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), Mask::causal(),
                                           {.p = drop_rate, .draw = dropout_draw});
  return reshape(permute(result.output, {0, 2, 1, 3}), {B, T, d_model});
}

FusedPair attention_pair(const BenchConfig& c, Rng& rng) {
  const Variable qkv = random_leaf({c.batch, c.target_length, 3 * c.d_model}, rng);
  const i64 h = c.num_heads, d_head = c.d_head();
  return {"packed_attention",
          "split, permute, attention, permute",
          {qkv},
          [=] { return composed_attention(qkv, h); },
          [=] {
            return packed_attention(qkv, {h, d_head, d_head}, Mask::causal(), {.p = drop_rate, .draw = dropout_draw});
          }};
}

// q [tokens, words]: a row has 1 - smoothing at its target, and its part of the smoothing everywhere.
Tensor smoothed(const Tensor& targets, i64 words) {
  Tensor q = full({targets.count(), words}, smoothing / static_cast<double>(words));
  for (i64 i = 0; i < targets.count(); ++i)
    q.write<float>()[i * words + targets.data<i32>()[i]] += static_cast<float>(1 - smoothing);
  return q;
}

// -1 / N sum over n and k of q_nk log softmax(x)_nk.
Variable composed_cross_entropy(const Variable& logits, const Tensor& q) {
  return scale(sum(mul(log_softmax(logits), constant(q))), -1.0 / static_cast<double>(q.size(0)));
}

// The loss of logits [tokens, words], and of x [tokens, d_model], which the head first maps to them.
std::vector<FusedPair> loss_pairs(const BenchConfig& c, Rng& rng) {
  const i64 tokens = c.target_tokens(), words = c.vocab_size;
  const Variable x = random_leaf({tokens, c.d_model}, rng), W = random_leaf({words, c.d_model}, rng);
  const Variable logits = random_leaf({tokens, words}, rng);
  const Tensor targets = randint(0, words, {tokens}, rng), q = smoothed(targets, words);
  const CrossEntropyOptions options{.label_smoothing = smoothing};
  return {{"linear_cross_entropy",
           "linear, cross_entropy",
           {x, W},
           [=] { return cross_entropy(linear(x, W, {}), targets, options); },
           [=] { return linear_cross_entropy(x, W, {}, targets, options); }},
          {"cross_entropy",
           "-sum(q log_softmax), label smoothing",
           {logits},
           [=] { return composed_cross_entropy(logits, q); },
           [=] { return cross_entropy(logits, targets, options); }}};
}

// Every linear map has d_model units, and the memory is as long as the sequence.
FusedPair attentive_gru_pair(const BenchConfig& c, Rng& rng) {
  const i64 B = c.batch, T = c.target_length, d_model = c.d_model;
  const auto layer = std::make_shared<translate::AttentiveGru>(
      translate::AttentiveGruSizes{.in = d_model, .H = d_model, .M = d_model, .A = d_model}, rng);
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
  Rng rng(1);
  std::vector<FusedPair> pairs = feed_forward_pairs(c, rng);
  for (FusedPair& pair : residual_pairs(c, rng)) pairs.push_back(std::move(pair));
  pairs.push_back(embedding_pair(c, rng));
  pairs.push_back(attention_pair(c, rng));
  for (FusedPair& pair : loss_pairs(c, rng)) pairs.push_back(std::move(pair));
  pairs.push_back(attentive_gru_pair(c, rng));
  return pairs;
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
