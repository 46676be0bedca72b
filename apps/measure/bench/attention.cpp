// Chapter 9. Attention over longer and longer sequences: twice the length takes four times the time, twice the memory.
#include "apps/measure/bench/attention.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/bench.h"
#include "apps/measure/bench/training.h"
#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/stopwatch.h"
#include "autograd/ops/fused/attention/packed_attention.h"
#include "core/machine/memory.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr i64 num_heads = 4, d_head = 64;
constexpr int runs = 3, steps = 2;

// The number of scores of all heads without a mask.
double score_count(i64 T) { return static_cast<double>(num_heads * T) * static_cast<double>(T); }

}  // namespace

double AttentionFigures::flop() const {
  constexpr double products = 7, causal_share = 0.5;
  return products * 2 * d_head * causal_share * (score_count(T) + static_cast<double>(num_heads * T));
}

std::vector<i64> attention_lengths() { return {1024, 2048, 4096, 8192, 16384}; }

AttentionFigures measure_attention(i64 T) {
  Rng rng(1);
  Variable qkv = parameter(randn({1, T, 3 * num_heads * d_head}, rng));
  const Tensor dy = randn({1, T, num_heads * d_head}, rng);
  AttentionFigures figures{.T = T};
  reset_peak();
  for (int run = 0; run <= runs; ++run) {  // the first also allocates memory and does not count
    Variable y;
    qkv.clear_gradient();
    const double forward = seconds_of([&] { y = packed_attention(qkv, {num_heads, d_head, d_head}, Mask::causal()); });
    const double backward = seconds_of([&] { orrery::backward(y, dy); });
    figures.forward = run <= 1 ? forward : std::min(figures.forward, forward);
    figures.backward = run <= 1 ? backward : std::min(figures.backward, backward);
  }
  figures.peak_bytes = memory_counters().peak_bytes;
  return figures;
}

void measure_long_step(AttentionFigures& figures) {
  BenchConfig config = bench_config("long");
  config.target_length = figures.T;
  BenchTraining training(config, config.dropout, 1);
  reset_peak();
  training.step();  // allocates memory
  for (int run = 0; run < steps; ++run) {
    const double seconds = seconds_of([&] { training.step(); });
    figures.step = run == 0 ? seconds : std::min(figures.step, seconds);
  }
  figures.step_peak_bytes = memory_counters().peak_bytes;
}

void print_attention(std::ostream& out, const std::vector<AttentionFigures>& rows) {
  constexpr double megabyte = 1 << 20, bytes_of_score = 4;
  out << numbers("causal self-attention, %ld heads, d_k = d_v = %ld, a batch of one; and a whole training step of\n",
                 num_heads, d_head)
      << "the configuration long: two layers of such attentions, d_model 256\n"
      << "     T   forward ms   backward ms    GF/s   peak MB   scores alone MB   step ms   step peak MB\n";
  for (const AttentionFigures& row : rows) {
    out << numbers("%6ld%13.1f%14.1f%8.0f%10.0f%18.0f%10.0f%15.0f\n", row.T, 1e3 * row.forward, 1e3 * row.backward,
                   1e-9 * row.flop() / (row.forward + row.backward), static_cast<double>(row.peak_bytes) / megabyte,
                   bytes_of_score * score_count(row.T) / megabyte, 1e3 * row.step,
                   static_cast<double>(row.step_peak_bytes) / megabyte);
  }
}

namespace {

constexpr i64 reach = 32, global_positions = 1;

// Longformer's pattern, or each pair with probability 1/2, as a table.
Mask window_as_table(i64 T) {
  Tensor allow = full({T, T}, 0, Dtype::i32);
  i32* to = allow.write<i32>();
  for (i64 i = 0; i < T; ++i) {
    for (i64 j = 0; j < T; ++j)
      to[i * T + j] = i < global_positions || j < global_positions || std::abs(i - j) <= reach ? 1 : 0;
  }
  return Mask::allow(allow);
}
Mask random_table(i64 T, Rng& rng) { return Mask::allow(randint(0, 2, {T, T}, rng)); }

}  // namespace

std::vector<MaskCost> measure_masks(i64 T, double budget) {
  Rng rng(1);
  const std::vector<std::pair<std::string, Mask>> masks{
      {"none", Mask()},
      {"causal", Mask::causal()},
      {"window(32)", Mask::window(reach)},
      {"window(32) | global(1)", Mask::window(reach) | Mask::global(global_positions)},
      {"the same as a table", window_as_table(T)},
      {"table, half of all pairs", random_table(T, rng)}};
  Variable qkv = parameter(randn({1, T, 3 * num_heads * d_head}, rng));
  const Tensor dy = randn({1, T, num_heads * d_head}, rng);
  const auto seconds_under = [&](const Mask& mask) {
    qkv.clear_gradient();
    return seconds_of([&] { backward(packed_attention(qkv, {num_heads, d_head, d_head}, mask), dy); });
  };
  std::vector<MaskCost> rows;
  for (const auto& [name, mask] : masks) rows.push_back({.T = T, .mask = name, .seconds = seconds_under(mask)});
  const Stopwatch all;
  for (int round = 0; round < runs || all.seconds() < budget; ++round) {
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].seconds = std::min(rows[i].seconds, seconds_under(masks[i].second));
  }
  for (MaskCost& row : rows) row.unmasked = rows[0].seconds;
  return rows;
}

void print_masks(std::ostream& out, const std::vector<MaskCost>& rows) {
  constexpr size_t mask_width = 26;
  out << numbers("self-attention, %ld heads, d_k = d_v = %ld, a batch of one: forward and backward\n", num_heads,
                 d_head)
      << "     T   mask                            ms   of unmasked\n";
  for (const MaskCost& row : rows) {
    out << numbers("%6ld   ", row.T) << fitted(row.mask, mask_width)
        << numbers("%8.2f%14.2f", 1e3 * row.seconds, row.ratio())
        << (row.kept() ? "\n" : numbers("   MISSED: at most %.1f\n", MaskCost::allowed));
  }
}

int bench_masks(const BenchOptions& options) {
  announce(options);
  constexpr double seconds_for_a_length = 3;
  std::vector<MaskCost> rows;
  for (const i64 T : {256, 2048, 4096}) {
    for (const MaskCost& row : measure_masks(T, seconds_for_a_length)) rows.push_back(row);
  }
  print_masks(std::cout, rows);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const MaskCost& row : rows)
    results.push_back({{"length", row.T}, {"mask", row.mask}, {"ms", 1e3 * row.seconds}, {"of_unmasked", row.ratio()}});
  write_results(options, "masks", results);
  return exit_code_of(rows);
}

int bench_attention(const BenchOptions& options) {
  announce(options);
  std::vector<AttentionFigures> rows;
  for (const i64 T : attention_lengths()) measure_long_step(rows.emplace_back(measure_attention(T)));
  print_attention(std::cout, rows);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const AttentionFigures& row : rows) {
    results.push_back({{"length", row.T},
                       {"forward_ms", 1e3 * row.forward},
                       {"backward_ms", 1e3 * row.backward},
                       {"gflop", 1e-9 * row.flop()},
                       {"peak_bytes", row.peak_bytes},
                       {"step_ms", 1e3 * row.step},
                       {"step_peak_bytes", row.step_peak_bytes}});
  }
  write_results(options, "attention", results);
  return done;
}

}  // namespace orrery
