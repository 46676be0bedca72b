// Chapter 9. `orrery bench decode`: how fast a GPT writes, beside what memory allows.
//
// For each token, the model reads all its weights once, and the cache of keys and values once for each stream. With one
// stream, that is only two operations for each number read, so memory is the limit:
//   tokens per second <= streams * bandwidth / (bytes of weights + streams * bytes of one stream's cache)
// A batch of streams shares the weights. The bandwidth is measured between the tokens, by threads that only read
// memory, since that of a shared machine may double from one minute to the next. A model that fits into the caches may
// exceed this limit.
#include <memory>

#include "apps/measure/bench/micro.h"
#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "apps/tasks/lm/training.h"
#include "core/tensor_ops.h"
#include "nn/generate/decoder_state.h"

namespace orrery {
namespace {

// Those that fit into the memory of common machines.
std::vector<std::string> writing_models() { return {"nanogpt", "gpt2", "gpt2-medium", "gpt2-large"}; }

// Bytes read for one more token in each of `streams` streams, after `positions` positions: weights and cache, in f32.
double bytes_of_step(const LanguageModelConfig& config, i64 streams, double positions) {
  const i64 tables = config.tied ? config.max_len : config.max_len + config.vocab_size;  // read in single rows
  const double weights = static_cast<double>(config.parameter_count() - tables * config.layer.d_model);
  const double cache = static_cast<double>(config.num_layers * 2 * config.layer.d_model) * positions;
  return static_cast<double>(bytes_of(f32)) * (weights + static_cast<double>(streams) * cache);
}

i64 positions_of(const BenchOptions& options) { return options.context + warm_up_steps + options.steps; }

void check_positions(const LanguageModelConfig& config, const BenchOptions& options) {
  const i64 positions = positions_of(options);
  if (positions > config.max_len)
    usage_error("--context and --steps", "with " + std::to_string(warm_up_steps) + " to warm up are " +
                                             std::to_string(positions) + ", more than the " +
                                             std::to_string(config.max_len) + " positions of " + options.config);
}

// A model that writes, and what it has written.
struct Writer {
  LanguageModel model;
  Tensor last;
  nn::DecoderState state;

  Writer(const LanguageModelConfig& config, i64 streams, const BenchOptions& options, Rng& rng)
      : model(config, rng),
        last(randint(0, config.vocab_size, {streams, 1}, rng)),
        state(nn::decoder_state(model, streams, positions_of(options))) {
    const NoGradient nothing_recorded;
    nn::next_positions(model, randint(0, config.vocab_size, {streams, options.context}, rng), state);
    for (i64 i = 0; i < warm_up_steps; ++i) step();
  }
  void step() {
    const NoGradient nothing_recorded;
    last = argmax(model.head(nn::next_positions(model, last, state)).value());
  }
};

// Rates are in tokens per second: reading memory is worth as many tokens as the model would have read it for.
Trial writing(i64 streams, const BenchOptions& options) {
  const LanguageModelConfig config = nn::gpt_preset(options.config);
  Rng rng(static_cast<u64>(options.seed));
  const auto writer = std::make_shared<Writer>(config, streams, options, rng);
  const auto memory = std::make_shared<MemoryReader>();
  memory->read();
  const double positions = static_cast<double>(writer->state.length) + 0.5 * static_cast<double>(options.steps + 1),
               bytes = bytes_of_step(config, streams, positions) / static_cast<double>(streams);
  return {.own = {.run = [writer] { writer->step(); }, .amount = static_cast<double>(streams)},
          .rival = Work{.run = [memory] { memory->read(); }, .amount = memory->bytes() / bytes},
          .besides = {{"MB a token", 1e-6 * bytes}}};
}

std::vector<Entry> decode_entries(const BenchOptions& options) {
  check_positions(nn::gpt_preset(options.config), options);
  std::vector<Entry> entries;
  for (const i64 streams : {i64{1}, options.batch})
    entries.push_back({.name = options.config + numbers(", %ld at once", streams),
                       .trial = [=] { return writing(streams, options); }});
  return entries;
}

void add_decode_options(CLI::App& command, BenchOptions& options) {
  options.config = "gpt2";
  options.batch = 8;
  add_choice(command, "--config", options.config, writing_models(), "Model");
  add_whole_number(command, "--batch", options.batch, 1, 1024, "Streams of the second measurement; the first has one");
  add_whole_number(command, "--context", options.context, 1, 1000000, "Positions read before the clock runs");
  add_whole_number(command, "--steps", options.steps, 1, 1000000, "Tokens of each stream to measure");
  add_seed(command, options.seed);
}

}  // namespace

MicroBench decode_bench() {
  return {.name = "decode",
          .what = "How fast a GPT writes, one token at a time",
          .help =
              "The limit is the time that memory takes to deliver weights and cache.\nExample:\n"
              "  orrery bench decode --config nanogpt --context 32",
          .entries = decode_entries,
          .add_options = add_decode_options,
          .time = "ms",
          .rate = "tok/s",
          .rival = "limit",
          .ratio = "of limit",
          .time_unit = 1e-3,
          .rate_unit = 1,
          .turns = steps_of,
          .rival_every = 4};
}

}  // namespace orrery
