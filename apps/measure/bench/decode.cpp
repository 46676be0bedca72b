// Chapter 9. Measuring how fast a GPT writes: one stream, then a batch of them.
#include "apps/measure/bench/decode.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/loops.h"
#include "apps/program/columns.h"
#include "apps/program/exit_code.h"
#include "apps/program/options.h"
#include "apps/program/stopwatch.h"
#include "apps/training/memory.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoder_state.h"

namespace orrery {
namespace {

constexpr i64 steps_between_readings = 4;

DecodeFigures measure(const nn::Gpt& model, i64 streams, const BenchOptions& options, MemoryReader& memory) {
  const NoGradient nothing_recorded;
  const i64 warm_up = warm_up_steps, vocabulary = model.config.vocab_size;
  Rng rng(static_cast<u64>(options.seed), u64{1} << 40);
  nn::GptState state = nn::gpt_state(model, streams, options.context + warm_up + options.steps);
  nn::next_positions(model, randint(0, vocabulary, {streams, options.context}, rng), state);
  Tensor last = randint(0, vocabulary, {streams, 1}, rng);
  const auto step = [&] { last = argmax(model.head(nn::next_positions(model, last, state)).value()); };
  for (i64 i = 0; i < warm_up; ++i) step();
  const double before = static_cast<double>(state.length());
  std::vector<double> seconds, reading_seconds;
  for (i64 i = 0; i < options.steps; ++i) {
    if (i % steps_between_readings == 0) reading_seconds.push_back(seconds_of([&] { memory.read(); }));
    seconds.push_back(seconds_of(step));
  }
  const double bandwidth = memory.bytes() / median(reading_seconds);
  const double positions = before + 0.5 * static_cast<double>(options.steps + 1);
  return {.config = options.config,
          .streams = streams,
          .step_seconds = median(seconds),
          .limit_seconds = bytes_of_step(model.config, streams, positions) / bandwidth,
          .bandwidth = bandwidth};
}

}  // namespace

std::vector<std::string> decode_config_names() { return {"nanogpt", "gpt2", "gpt2-medium", "gpt2-large"}; }

double bytes_of_step(const nn::GptConfig& config, i64 streams, double positions) {
  const i64 tables = config.tied ? config.max_len : config.max_len + config.vocab_size;  // read in single rows
  const double weights = static_cast<double>(config.parameter_count() - tables * config.layer.d_model);
  const double cache = static_cast<double>(config.num_layers * 2 * config.layer.d_model) * positions;
  return static_cast<double>(bytes_of(f32)) * (weights + static_cast<double>(streams) * cache);
}

std::string decode_line(const DecodeFigures& f) {
  return f.config + numbers(" streams=%ld tok/s=%.1f limit_tok/s=%.1f of_limit=%.0f%% GB/s=%.1f", f.streams,
                            f.tokens_per_second(), f.limit(), 100 * f.tokens_per_second() / f.limit(),
                            1e-9 * f.bandwidth);
}

int bench_decode(const BenchOptions& options) {
  nn::GptConfig config = nn::gpt_preset(options.config);
  const i64 positions = options.context + warm_up_steps + options.steps;
  if (positions > config.max_len)
    usage_error("--context and --steps", "with " + std::to_string(warm_up_steps) + " to warm up are " +
                                             std::to_string(positions) + ", more than the " +
                                             std::to_string(config.max_len) + " positions of " + options.config);
  const double cache = static_cast<double>(options.batch * positions * config.num_layers * 2 * config.layer.d_model);
  check_memory("bench decode", {.parameters = config.parameter_count(), .copies = 1, .kept = cache});
  Rng rng(static_cast<u64>(options.seed));
  nn::Gpt model(config, rng);
  announce(options, model.parameter_count());
  MemoryReader memory;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const i64 streams : {i64{1}, options.batch}) {
    const DecodeFigures figures = measure(model, streams, options, memory);
    std::cout << decode_line(figures) << std::endl;
    rows.push_back({{"streams", streams},
                    {"tokens_per_second", figures.tokens_per_second()},
                    {"limit_tokens_per_second", figures.limit()},
                    {"gbyte_per_second", 1e-9 * figures.bandwidth}});
  }
  write_results(options, "decode",
                {{"config", options.config}, {"context", options.context}, {"steps", options.steps}, {"rows", rows}});
  return done;
}

}  // namespace orrery
