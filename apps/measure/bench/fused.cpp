// Chapter 9. `orrery bench fused`: each fused operation, compared with its composed form, the one to read.
//
// Both forms compute the same, as the tests of autograd/ops/ show. The fused form does in one pass over memory what
// takes several operations in the composed form. Times are for forward and backward together, at the sizes of a
// configuration's decoder; memory is what forward leaves for backward, its result included.
#include <memory>

#include "apps/measure/bench/micro.h"
#include "apps/program/options.h"
#include "autograd/ops.h"
#include "core/machine/memory.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr double drop_rate = 0.1, smoothing = 0.1;
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

Work work_of(const FusedPair& pair, const std::function<Variable()>& form) {
  return {.run = [form, dy = full(form().shape(), 1.0)] { backward(form(), dy); },
          .prepare =
              [leaves = pair.leaves] {
                for (Variable leaf : leaves) leaf.clear_gradient();
              }};
}

double megabytes_held_by(const std::function<Variable()>& form) {
  const i64 before = memory_counters().live_bytes;
  const Variable y = form();
  return 1e-6 * static_cast<double>(memory_counters().live_bytes - before);
}

}  // namespace

std::vector<FusedPair> fused_pairs(const BenchConfig& c) {
  Rng rng(1);
  std::vector<FusedPair> pairs = feed_forward_pairs(c, rng);
  for (FusedPair& pair : residual_pairs(c, rng)) pairs.push_back(std::move(pair));
  pairs.push_back(embedding_pair(c, rng));
  pairs.push_back(attention_pair(c, rng));
  for (FusedPair& pair : loss_pairs(c, rng)) pairs.push_back(std::move(pair));
  return pairs;
}

namespace {

// The pairs share leaves, so all are made at once.
std::vector<Entry> fused_entries(const BenchOptions& options) {
  const auto pairs = std::make_shared<std::vector<FusedPair>>(fused_pairs(bench_config(options.config)));
  std::vector<Entry> entries;
  for (const FusedPair& pair : *pairs) {
    entries.push_back({.name = pair.name + ": " + pair.composed_of, .trial = [pairs, &pair] {
                         return Trial{.own = work_of(pair, pair.fused),
                                      .rival = work_of(pair, pair.composed),
                                      .besides = {{"MB", megabytes_held_by(pair.fused)},
                                                  {"MB composed", megabytes_held_by(pair.composed)}}};
                       }});
  }
  return entries;
}

}  // namespace

MicroBench fused_bench() {
  return {.name = "fused",
          .what = "What each fused operation saves over its composed form",
          .help =
              "Forward and backward; MB: what forward keeps for backward, its result included.\nExample:\n"
              "  orrery bench fused --config tiny-mt",
          .entries = fused_entries,
          .add_options =
              [](CLI::App& command, BenchOptions& options) {
                options.config = "base";
                add_choice(command, "--config", options.config, bench_config_names(), "Whose sizes");
              },
          .time = "fused ms",
          .rival = "composed",
          .ratio = "share",
          .time_unit = 1e-3,
          .seconds = 0.2};
}

}  // namespace orrery
