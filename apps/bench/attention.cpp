// Chapter 9. Attention over longer and longer sequences: twice the length takes four times the time, twice the memory.
//
// Serves: core/machine/parallel.h
#include "apps/bench/attention.h"

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/bench/bench.h"
#include "apps/bench/training.h"
#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/stopwatch.h"
#include "autograd/ops/fused/packed_attention.h"
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
