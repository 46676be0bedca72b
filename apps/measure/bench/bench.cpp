// Chapter 9. `orrery bench`: measures the speed of this program.
//
// Each benchmark is one file: step, profile, promises, gemm, ops, fused, attention (and masks), busy, toy, decode.
#include "apps/measure/bench/bench.h"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/configs.h"
#include "apps/measure/bench/decode.h"
#include "apps/program/columns.h"
#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "core/files/json.h"
#include "core/machine/parallel.h"
#include "core/products/blas.h"

namespace orrery {

void announce(const BenchOptions& options, i64 parameters) {
  print_start(std::cerr, {.seed = options.seed, .parameters = parameters, .measured = true});
}

nlohmann::ordered_json as_json(const BenchConfig& config) {
  return {{"name", config.name},
          {"batch", config.batch},
          {"source_length", config.source_length},
          {"target_length", config.target_length},
          {"d_model", config.d_model},
          {"d_ff", config.d_ff},
          {"heads", config.num_heads},
          {"encoder_layers", config.num_encoder_layers},
          {"decoder_layers", config.num_decoder_layers},
          {"vocabulary", config.vocab_size}};
}

void write_results(const BenchOptions& options, const std::string& bench, const nlohmann::ordered_json& results) {
  if (options.json.empty()) return;
  const BlasInfo blas = blas_info();
  const nlohmann::ordered_json all = {
      {"bench", bench},       {"cpu", cpu_name()},   {"threads", threads()},  {"tiles", least_tiles()},
      {"seed", options.seed}, {"blas", blas.config}, {"kernel", blas.kernel}, {"blas_threads", blas.threading},
      {"results", results}};
  write_text(options.json, json_text(all, 2) + '\n');
}

namespace {

using Bench = int (*)(const BenchOptions&);

// Adds `orrery bench NAME`. The caller may add more options.
CLI::App& add_bench(CLI::App& benches, const std::string& name, const std::string& what, Bench bench,
                    const std::shared_ptr<BenchOptions>& options, int& exit_code, const std::string& footer) {
  CLI::App& command = add_command(benches, name, what, footer);
  add_threads(command, options->threads);
  add_tiles(command, options->tiles);
  add_output_file(command, "--json", options->json, "Write the results to this file too, in full");
  when_run(command, exit_code, [bench, options] {
    check_can_write_text("bench", "--json", options->json);
    set_threads(static_cast<int>(options->threads));
    set_least_tiles(static_cast<int>(options->tiles));
    return bench(*options);
  });
  return command;
}

void add_step_options(CLI::App& command, BenchOptions& options) {
  options.config = "toy";
  add_choice(command, "--config", options.config, bench_config_names(), "Model and batch");
  add_whole_number(command, "--steps", options.steps, 1, 1000000,
                   "Steps to measure, after " + std::to_string(warm_up_steps) + " to warm up");
  show_default(add_number(command, "--dropout", options.dropout, 0, 0.99, "Probability of dropping a unit"),
               "the configuration's");
  add_seed(command, options.seed);
  add_whole_number(command, "--batch", options.batch, 0, 100000, "Sequences in a batch, if not 0");
  add_whole_number(command, "--length", options.length, 0, 100000, "Length of all sequences, if not 0");
  add_whole_number(command, "--width", options.width, 0, 100000, "d_model, if not 0; d_ff in proportion");
}

// One line for each configuration, for the end of a help text.
std::string configurations() {
  std::string lines = "Configurations: d_model, layers, batch x tokens of source and target\n";
  for (const BenchConfig& c : bench_configs()) {
    const std::string shape = c.is_gpt()
                                  ? numbers("%2ld        %3ld x  %ld", c.num_decoder_layers, c.batch, c.target_length)
                                  : numbers("%2ld + %ld    %3ld x (%ld + %ld)", c.num_encoder_layers,
                                            c.num_decoder_layers, c.batch, c.source_length, c.target_length);
    lines += "  " + fitted(c.name, 11) + numbers("%4ld  ", c.d_model) + fitted(shape, 30) + c.what + '\n';
  }
  return lines;
}

std::shared_ptr<BenchOptions> new_options() { return std::make_shared<BenchOptions>(); }

// Benches of whole training steps.
void add_step_benches(CLI::App& benches, int& exit_code) {
  const auto step = new_options();
  add_step_options(add_bench(benches, "step", "The time of a training step", bench_step, step, exit_code,
                             configurations() + "Example:\n  orrery bench step --config base --steps 10 --length 64"),
                   *step);

  const auto profile = new_options();
  add_step_options(
      add_bench(benches, "profile", "Where the time of a training step goes", bench_profile, profile, exit_code,
                "Half of the steps are observed; the last line says what that costs. GF/s count products, GB/s what "
                "goes in and out.\nExample:\n  orrery bench profile --config tiny-mt --json profile.json"),
      *profile);

  const auto promises = new_options();
  promises->steps = 300;
  add_step_options(
      add_bench(benches, "promises", "What promises cost a training step: versions, the first-NaN watch, denormals",
                bench_promises, promises, exit_code,
                "Steps with and without take turns; a cost is the median of the ratios of neighbours, minus 1. The "
                "versions of saved tensors cannot be switched off: the time for one tensor is multiplied by the "
                "largest number of tensors that a step may save.\nExample:\n  orrery bench promises --config tiny-mt "
                "--steps 20"),
      *promises);
}

// Benches of products, loops and operations.
void add_operation_benches(CLI::App& benches, int& exit_code) {
  const auto gemm = new_options();
  gemm->config = "all";
  std::vector<std::string> names = bench_config_names();
  names.insert(names.begin(), "all");
  add_choice(add_bench(benches, "gemm", "The speed of every matrix product of a step", bench_gemm, gemm, exit_code,
                       "Example:\n  orrery bench gemm --config base --threads 1"),
             "--config", gemm->config, names, "Whose products");

  add_bench(benches, "ops", "The speed of everything except products", bench_ops, new_options(), exit_code,
            "Example:\n  orrery bench ops --threads 2 --json ops.json");

  const auto fused = new_options();
  fused->config = "base";
  add_choice(add_bench(benches, "fused", "What each fused operation saves over its composed form", bench_fused, fused,
                       exit_code, "Example:\n  orrery bench fused --config tiny-mt"),
             "--config", fused->config, bench_config_names(), "Whose sizes");

  add_bench(benches, "attention", "Time and memory of attention over long sequences", bench_attention, new_options(),
            exit_code, "Example:\n  orrery bench attention --threads 2");
  add_bench(benches, "masks", "What masks cost attention", bench_masks, new_options(), exit_code,
            "The masks take turns; a time is that of the fastest run. MISSED: more than 1.3 times the time without a "
            "mask.\nExample:\n  orrery bench masks --threads 1");
}

// Benches that take longer than the others.
void add_long_benches(CLI::App& benches, int& exit_code) {
  const auto busy = new_options();
  busy->steps = 200;
  CLI::App& busy_command =
      add_bench(benches, "busy", "The time of a training step beside other programs", bench_busy, busy, exit_code,
                "Starts the other programs itself: one that computes, and then a second training. Beside them a step "
                "with all threads may take as long as a step with one, and no longer. Nothing else should run "
                "meanwhile.\n"
                "Example:\n  orrery bench busy --threads 2");
  busy->config = "toy";
  add_choice(busy_command, "--config", busy->config, bench_config_names(), "Model and batch");
  add_whole_number(busy_command, "--steps", busy->steps, 1, 1000000, "Steps of each measurement");
  add_seed(busy_command, busy->seed);

  const auto toy = new_options();
  toy->steps = 3000;
  CLI::App& toy_command =
      add_bench(benches, "toy", "How long a whole training of the toy takes, with its exam, task by task", bench_toy,
                toy, exit_code, "Example:\n  orrery bench toy --seed 2");
  add_whole_number(toy_command, "--steps", toy->steps, 1, 1000000, "Steps of each training");
  add_seed(toy_command, toy->seed);

  const auto decode = new_options();
  CLI::App& decode_command =
      add_bench(benches, "decode", "How fast a GPT writes, one token at a time", bench_decode, decode, exit_code,
                "The limit is the time that memory takes to deliver weights and cache.\n"
                "Example:\n  orrery bench decode --config nanogpt --context 32");
  decode->config = "gpt2";
  decode->batch = 8;
  add_choice(decode_command, "--config", decode->config, decode_config_names(), "Model");
  add_whole_number(decode_command, "--batch", decode->batch, 1, 1024,
                   "Streams of the second measurement; the first has one");
  add_whole_number(decode_command, "--context", decode->context, 1, 1000000, "Positions read before the clock runs");
  add_whole_number(decode_command, "--steps", decode->steps, 1, 1000000, "Tokens of each stream to measure");
  add_seed(decode_command, decode->seed);
}

}  // namespace

void add_bench(CLI::App& program, int& exit_code) {
  CLI::App& benches = add_command(
      program, "bench", "Measure the speed of training steps and their parts, of whole trainings, and of writing",
      "Example:\n  orrery bench step --config tiny-mt\nEach bench has its own --help.");
  needs_sub_command(benches);
  add_step_benches(benches, exit_code);
  add_operation_benches(benches, exit_code);
  add_long_benches(benches, exit_code);
}

}  // namespace orrery
