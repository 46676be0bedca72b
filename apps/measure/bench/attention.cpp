// Chapter 9. `orrery bench attention`: time and memory of attention over long sequences; `masks`: what masks cost it.
//
// Twice the length takes four times the time, and twice the memory. All measure self-attention of 4 heads with
// d_k = d_v = 64, forward and backward, without the products around it; the first also a whole training step of the
// configuration `long`, a GPT of two layers with such attentions.
#include <memory>

#include "apps/measure/bench/micro.h"
#include "apps/measure/bench/training.h"
#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "autograd/ops/fused/attention/packed_attention.h"
#include "core/machine/memory.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

namespace orrery {
namespace {

constexpr i64 num_heads = 4, d_head = 64, reach = 32, global_positions = 1;
constexpr double bytes_of_megabyte = 1 << 20;

// Operations of the products in forward and backward: 7 products of 2 d for each pair that a causal mask allows, of
// which there are T (T + 1) / 2. (The scores are computed twice.)
double causal_operations(i64 T) {
  constexpr double products = 7, causal_share = 0.5;
  return products * 2 * d_head * causal_share * static_cast<double>(num_heads * T) * static_cast<double>(T + 1);
}

Work attention_work(i64 T, const Mask& mask) {
  Rng rng(1);
  const Variable qkv = parameter(randn({1, T, 3 * num_heads * d_head}, rng));
  const Tensor dy = randn({1, T, num_heads * d_head}, rng);
  return {.run =
              [=] {
                backward(packed_attention(qkv, {num_heads, d_head, d_head}, mask), dy);
              },
          .prepare = [leaf = qkv]() mutable { leaf.clear_gradient(); }};
}

// The most megabytes that exist at once in a run after the first.
double peak_of(const Work& work) {
  work.prepare();
  work.run();
  work.prepare();
  reset_peak();
  work.run();
  return static_cast<double>(memory_counters().peak_bytes) / bytes_of_megabyte;
}

Trial alone(i64 T) {
  Work work = attention_work(T, Mask::causal());
  work.amount = causal_operations(T);
  constexpr double bytes_of_score = 4;
  const double scores = static_cast<double>(num_heads * T) * static_cast<double>(T);
  return {.own = work,
          .besides = {{"peak MB", peak_of(work)}, {"MB of all scores", bytes_of_score * scores / bytes_of_megabyte}}};
}

Trial step_of_length(i64 T) {
  BenchConfig config = bench_config("long");
  config.target_length = T;
  const auto training = std::make_shared<BenchTraining>(config, config.dropout, 1);
  const Work work{.run = [training] { training->step(); }};
  return {.own = work, .besides = {{"peak MB", peak_of(work)}}};
}

std::vector<Entry> attention_entries(const BenchOptions&) {
  std::vector<Entry> entries;
  for (const i64 T : {1024, 2048, 4096, 8192, 16384}) {
    entries.push_back({.name = numbers("causal attention, T = %ld", T), .trial = [T] { return alone(T); }});
    entries.push_back({.name = numbers("training step, T = %ld", T), .trial = [T] { return step_of_length(T); }});
  }
  return entries;
}

// Longformer's pattern as a table.
Mask window_as_table(i64 T) {
  Tensor allow = full({T, T}, 0, Dtype::i32);
  i32* to = allow.write<i32>();
  for (i64 i = 0; i < T; ++i) {
    for (i64 j = 0; j < T; ++j)
      to[i * T + j] = i < global_positions || j < global_positions || std::abs(i - j) <= reach ? 1 : 0;
  }
  return Mask::allow(allow);
}
// Each pair with probability 1/2.
Mask random_table(i64 T) {
  Rng rng(1);
  return Mask::allow(randint(0, 2, {T, T}, rng));
}

std::vector<Entry> masks_entries(const BenchOptions&) {
  constexpr double most = 1.3;
  const std::pair<const char*, Mask (*)(i64)> masks[] = {
      {"causal", [](i64) { return Mask::causal(); }},
      {"window(32)", [](i64) { return Mask::window(reach); }},
      {"window(32) | global(1)", [](i64) { return Mask::window(reach) | Mask::global(global_positions); }},
      {"the same as a table", window_as_table},
      {"table, half of all pairs", random_table}};
  std::vector<Entry> entries;
  for (const i64 T : {256, 2048, 4096}) {
    for (const auto& [name, mask] : masks) {
      entries.push_back({.name = numbers("T = %ld, ", T) + name,
                         .trial =
                             [T, make = mask] {
                               return Trial{.own = attention_work(T, make(T)), .rival = attention_work(T, Mask())};
                             },
                         .most = most});
    }
  }
  return entries;
}

}  // namespace

MicroBench attention_bench() {
  return {.name = "attention",
          .what = "Time and memory of attention over long sequences",
          .help =
              "4 heads with d_k = d_v = 64, a batch of one, forward and backward; and a step of the configuration "
              "long.\nExample:\n  orrery bench attention --threads 2",
          .entries = attention_entries,
          .add_options =
              [](CLI::App& command, BenchOptions& options) {
                options.steps = 3;
                add_whole_number(command, "--steps", options.steps, 1, 1000000, "Runs of each length");
              },
          .time = "ms",
          .rate = "GF/s",
          .time_unit = 1e-3,
          .turns = steps_of};
}

MicroBench masks_bench() {
  return {.name = "masks",
          .what = "What masks cost attention",
          .help =
              "4 heads with d_k = d_v = 64, a batch of one, forward and backward; every mask takes turns with none. "
              "MISSED: more than 1.3 times the time without a mask.\nExample:\n  orrery bench masks --threads 1",
          .entries = masks_entries,
          .time = "ms",
          .rival = "unmasked",
          .ratio = "share",
          .time_unit = 1e-3,
          .seconds = 0.5};
}

}  // namespace orrery
