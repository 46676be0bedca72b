// Chapter 9. `orrery bench`: measures the speed of this program.
//
// A training step is measured here: three to warm up, then the clock starts; and so are whole trainings of the toy.
// Each other benchmark is one file: profile, ranks, and the tables gemm, ops, fused, attention (and masks), decode,
// promises, busy.
#include "apps/measure/bench/bench.h"

#include <sys/resource.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/measure/bench/micro.h"
#include "apps/measure/bench/training.h"
#include "apps/program/command.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/tasks/toy/training.h"
#include "core/files/json.h"
#include "core/machine/parallel.h"
#include "core/products/blas.h"
#include "core/products/gemm.h"
#include "core/products/precision.h"

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
  const nlohmann::ordered_json all = {{"bench", bench},
                                      {"cpu", cpu_name()},
                                      {"threads", threads()},
                                      {"products", products_name(uses_blas())},
                                      {"precision", precision_name(uses_bf16())},
                                      {"seed", options.seed},
                                      {"blas", blas.config},
                                      {"kernel", blas.kernel},
                                      {"blas_threads", blas.threading},
                                      {"results", results}};
  write_text(options.json, json_text(all, 2) + '\n');
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

namespace {

// Adds `orrery bench NAME`, which calls bench(options).
void add_bench(CLI::App& benches, const std::string& name, const std::string& what, const std::string& footer,
               int& exit_code, const std::function<void(CLI::App&, BenchOptions&)>& add_options,
               const std::function<int(const BenchOptions&)>& bench) {
  const auto options = std::make_shared<BenchOptions>();
  CLI::App& command = add_command(benches, name, what, footer);
  add_options(command, *options);
  add_threads(command, options->threads);
  add_products(command, options->products);
  add_output_file(command, "--json", options->json, "Write the results to this file too, in full");
  when_run(command, exit_code, [bench, options] {
    check_can_write_text("bench", "--json", options->json);
    set_threads(static_cast<int>(options->threads));
    set_products(options->products);
    limit_tensors();
    return bench(*options);
  });
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

void add_toy_options(CLI::App& command, BenchOptions& options) {
  options.steps = 3000;
  add_whole_number(command, "--steps", options.steps, 1, 1000000, "Steps of each training");
  add_seed(command, options.seed);
}

void add_ranks_options(CLI::App& command, BenchOptions& options) {
  options.steps = 5;
  show_default(add_choice(command, "--config", options.config, bench_config_names(), "Model and batch"),
               "toy, gpt-mid and gpt2");
  add_whole_number(command, "--steps", options.steps, 1, 1000000, "Steps to measure, and joinings");
  add_seed(command, options.seed);
}

void add_micro_bench(CLI::App& benches, const MicroBench& bench, int& exit_code) {
  const auto add_options = [bench](CLI::App& command, BenchOptions& options) {
    bench.add_options(command, options);
    add_arguments(command, "ENTRY", options.names, "Entries, such as '*backward'; without any: all");
    add_flag(command, "--list", options.list, "Print the names of the entries, measure nothing");
  };
  add_bench(benches, bench.name, bench.what, bench.help, exit_code, add_options,
            [bench](const BenchOptions& options) { return run_micro(bench, options); });
}

}  // namespace

void add_bench(CLI::App& program, int& exit_code) {
  CLI::App& benches = add_command(
      program, "bench", "Measure the speed of training steps and their parts, of whole trainings, and of writing",
      "Example:\n  orrery bench step --config tiny-mt\nEach bench has its own --help.");
  needs_sub_command(benches);
  add_bench(benches, "step", "The time of a training step",
            configurations() + "Example:\n  orrery bench step --config base --steps 10 --length 64", exit_code,
            add_step_options, bench_step);
  add_bench(
      benches, "profile", "Where the time of a training step goes",
      "Half of the steps are observed; the last line says what that costs. GF/s count products, GB/s what goes in "
      "and out.\nExample:\n  orrery bench profile --config tiny-mt --json profile.json",
      exit_code, add_step_options, bench_profile);
  for (const MicroBench& bench : {promises_bench(), gemm_bench(), ops_bench(), fused_bench(), attention_bench(),
                                  masks_bench(), busy_bench(), decode_bench()})
    add_micro_bench(benches, bench, exit_code);
  add_bench(benches, "toy", "How long a whole training of the toy takes, with its exam, task by task",
            "Example:\n  orrery bench toy --seed 2", exit_code, add_toy_options, bench_toy);
  add_bench(benches, "ranks", "How long ranks take to join gradients, and what that foretells for more of them",
            "Needs MPI. With more than two ranks, what two of them foretell is compared with what all take.\n"
            "Example:\n  mpirun -np 2 orrery bench ranks --config gpt-mid",
            exit_code, add_ranks_options, bench_ranks);
}

namespace {

i64 peak_resident_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;  // Linux counts in KiB
}

}  // namespace

StepFigures measure_steps(const BenchConfig& config, const BenchOptions& options) {
  BenchTraining training(config, config.dropout_or_own(options.dropout), options.seed);
  StepFigures figures{.config = config.name, .parameters = training.parameter_count()};
  for (int i = 0; i < warm_up_steps; ++i) training.step();
  std::vector<double> seconds;
  for (i64 i = 0; i < options.steps; ++i) seconds.push_back(seconds_of([&] { figures.loss = training.step(); }));
  figures.median = median(seconds);
  figures.fastest = *std::min_element(seconds.begin(), seconds.end());
  figures.tokens_per_second = static_cast<double>(config.tokens_per_step()) / figures.median;
  figures.peak_megabytes = peak_resident_megabytes();
  return figures;
}

std::string step_line(const StepFigures& f) {
  return f.config + numbers(" step_ms=%.2f min_ms=%.2f tok/s=%.0f params=%.2fM peak_mb=%ld loss=%.4f", 1e3 * f.median,
                            1e3 * f.fastest, f.tokens_per_second, 1e-6 * static_cast<double>(f.parameters),
                            f.peak_megabytes, f.loss);
}

int bench_step(const BenchOptions& options) {
  const BenchConfig config = scaled(bench_config(options.config), options.batch, options.length, options.width);
  announce(options);
  const StepFigures figures = measure_steps(config, options);
  std::cout << step_line(figures) << std::endl;
  write_results(options, "step",
                {{"config", as_json(config)},
                 {"steps", options.steps},
                 {"dropout", config.dropout_or_own(options.dropout)},
                 {"median_ms", 1e3 * figures.median},
                 {"min_ms", 1e3 * figures.fastest},
                 {"tokens_per_second", figures.tokens_per_second},
                 {"parameters", figures.parameters},
                 {"peak_mb", figures.peak_megabytes},
                 {"loss", figures.loss}});
  return done;
}

ToyFigures measure_toy(const std::string& task, i64 steps, i64 seed) {
  constexpr i64 exam_size = 1000;
  ToyRecipe recipe;
  recipe.task.name = task;
  recipe.steps = steps;
  recipe.seed = seed;
  const Stopwatch watch;
  ToyTraining training(recipe);
  while (training.trainer.steps_done() < recipe.steps) training.trainer.step();
  ToyFigures figures{.task = task, .steps = steps, .exam_size = exam_size, .training_seconds = watch.seconds()};
  figures.right = examine(training.task.model, recipe.task, exam_size, seed).right;
  figures.exam_seconds = watch.seconds() - figures.training_seconds;
  return figures;
}

std::string toy_line(const ToyFigures& f) {
  return f.task + numbers(" steps=%ld train_s=%.2f step_ms=%.2f exam_s=%.2f exact=%ld/%ld", f.steps, f.training_seconds,
                          1e3 * f.training_seconds / static_cast<double>(f.steps), f.exam_seconds, f.right,
                          f.exam_size);
}

int bench_toy(const BenchOptions& options) {
  announce(options);
  nlohmann::ordered_json results;
  for (const std::string task : {"reverse", "copy", "sort"}) {
    const ToyFigures figures = measure_toy(task, options.steps, options.seed);
    std::cout << toy_line(figures) << std::endl;
    results.push_back({{"task", task},
                       {"steps", figures.steps},
                       {"training_seconds", figures.training_seconds},
                       {"exam_seconds", figures.exam_seconds},
                       {"right", figures.right},
                       {"exam_size", figures.exam_size}});
  }
  write_results(options, "toy", results);
  return done;
}

}  // namespace orrery
