// Chapter 9. `orrery lm`: trains a GPT on a text, character by character, and samples from it.
//
//   orrery lm train --save shakespeare.safetensors
//   orrery lm sample --load shakespeare.safetensors --prompt ROMEO:
//   orrery lm eval --load shakespeare.safetensors
// Serves: nn/models/gpt.h
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>

#include "apps/lm/checkpoint.h"
#include "apps/lm/saved.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/training/memory.h"
#include "apps/training/recipe_options.h"
#include "apps/training/run.h"
#include "apps/training/run_options.h"
#include "core/files/crc32c.h"

namespace orrery {
namespace {

constexpr i64 glimpse = 60, last_sample = 300;  // characters shown at each estimate, and at the end

struct TrainOptions {
  LmRecipe recipe;
  RunOptions run;
  std::string preset = "nanogpt", file;
  bool untied = false;
};

// Checks options against each other, before the training starts.
void check_options(const LmRecipe& recipe) {
  if (recipe.model.layer.d_model % recipe.model.layer.num_heads != 0)
    usage_error("--heads", "must divide --d-model, " + std::to_string(recipe.model.layer.d_model));
  check_recipe_options(recipe);
}

// A text on one line: new lines and control characters are shown as symbols.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? "\u21b5" : std::string(1, c);
  return harmless(line);
}

// What `written` makes of a sample of the model. If sampling fails, the training continues, and nothing else is lost.
std::string written_by(const LmTask& task, i64 characters,
                       const std::function<std::string(const std::string&)>& written) {
  try {
    return written(task.sample(characters));
  } catch (const Error& error) { return std::string("it cannot write: ") + error.what(); }
}

std::string glimpse_of(const LmTask& task) {
  return "  " + written_by(task, glimpse, [](const std::string& text) { return "it writes: " + on_one_line(text); });
}

// Prints a sample of the model and its losses, after a training that has ended or was stopped. Returns
// the validation loss.
double report(const TrainOptions& options, Trainer& trainer, const LmTask& task, const Stopwatch& watch) {
  const std::string hash = trainer.hash();
  const double loss = end_with_better(trainer, task);
  std::cout << written_by(task, last_sample, [](const std::string& text) { return for_reader(text, STDOUT_FILENO); })
            << '\n';
  if (options.run.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss;
  if (trainer.best_step() > 0)
    std::cout << " (best estimate " << trainer.best_loss() << " at step " << trainer.best_step() << ')';
  std::cout << " in " << std::setprecision(1) << watch.seconds() << " s" << std::endl;
  return loss;
}

// Seconds that the remaining steps and all evaluations will take, with that of the whole validation text.
double expected_seconds(Trainer& trainer, const LmTask& task, const TextData& data) {
  const double step = trainer.seconds_of_step();
  // Backward takes twice as long as forward.
  const double forward = step / 3 / static_cast<double>(task.tokens_read());
  return trainer.expected_seconds(step) + forward * static_cast<double>(data.validation.count());
}

// Error: the log would replace something else.
void check_log(const std::string& log, const std::string& text, const TrainingFiles& files) {
  check_can_write_text("lm", "--log", log);
  check(!files.writes(log), "lm", "--log ", log, " would write over the files of --save ", files.model());
  std::error_code absent;
  check(!std::filesystem::equivalent(log, text, absent), "lm", "--log ", log, " would write over the text to learn, ",
        text);
}

// Trains from `state`, or from the beginning.
int train(const TrainOptions& options, const LmOrigin& origin, const TrainingState* state, const std::string& text,
          TrainingFiles& files) {
  const Stopwatch watch;
  LmRecipe recipe = origin.recipe.resolved();
  recipe.minutes = options.run.time_limit;
  check_log(options.run.log, origin.text, files);
  const TextData data = within("read " + origin.text, [&] { return text_data(text, recipe.model.max_len); });
  nn::GptConfig model = recipe.model;
  model.vocab_size = data.alphabet.size();
  check_memory("lm", {.parameters = model.parameter_count(),
                      .copies = 1 + numbers_for_each_parameter(recipe),
                      .kept = kept_numbers(model, recipe.batch, model.max_len)});
  files.check_room(recipe, model.parameter_count());
  std::cerr << "text " << harmless(origin.text) << ": " << data.training.count() << " + " << data.validation.count()
            << " characters of " << data.alphabet.size() << " kinds\n";
  const Interrupt interrupt;
  LmTask task(recipe, data);
  Trainer trainer(task, recipe, model.layer.d_model);
  if (state) trainer.load_state(*state);
  print_start(std::cerr, {.seed = recipe.seed,
                          .parameters = task.model.parameter_count(),
                          .expected_seconds = expected_seconds(trainer, task, data),
                          .time_limit = options.run.time_limit});
  if (state) std::cerr << "resuming after step " << state->steps_done << " of " << recipe.steps << '\n';
  const i64 done_before = trainer.steps_done();
  const SavedParts parts = saved_parts(origin, task);
  TrainingLog log(options.run.log, state != nullptr);
  const RunHooks hooks{.after_evaluation = [&] {
    std::string line;
    trainer.with_judged([&] { line = glimpse_of(task); });
    return line;
  }};
  const std::exception_ptr failure = failure_of([&] { run_steps(trainer, files, parts, log, interrupt, hooks); });
  if (trainer.steps_done() == done_before && !trainer.finished()) {  // the files stay as they are
    if (failure) std::rethrow_exception(failure);
    print_stopped(trainer, files, "orrery lm train", false);
    return interrupted;
  }
  end_training(
      failure, [&] { log.score(trainer.steps_done(), "validation loss", report(options, trainer, task, watch)); },
      [&] { save_model(trainer, files, parts, "orrery lm train", failure != nullptr); });
  return trainer.finished() ? done : interrupted;
}

int resume(const TrainOptions& options) {
  TrainingFiles files("lm", options.run.resume);
  files.go_on();
  const UnfinishedTraining unfinished = read_unfinished("lm", files);
  LmOrigin origin = origin_of(unfinished, files.resume());
  if (!options.file.empty()) origin.text = options.file;
  const std::string text = read_text(origin.text);
  check(crc32c(std::as_bytes(std::span(text))) == origin.text_checksum, "lm", origin.text,
        " is not the text that this training began with");
  compute_as(unfinished);
  return train(options, origin, &unfinished.state, text, files);
}

int begin(TrainOptions& options) {
  options.recipe.model.tied = !options.untied;
  options.recipe = options.recipe.resolved();
  check_options(options.recipe);
  if (!options.file.empty()) options.file = std::filesystem::absolute(options.file).string();  // for another folder
  if (options.run.print_config) return print_config(options.run);
  const std::string path = std::filesystem::absolute(text_path(options.file)).string(), text = read_text(path);
  const LmOrigin origin{.recipe = options.recipe,
                        .options = options.run.chosen(),
                        .text = path,
                        .text_checksum = crc32c(std::as_bytes(std::span(text)))};
  TrainingFiles files("lm", options.run.save);
  if (files.writes(path)) fail("lm", "--save ", options.run.save, " would write over the text to learn, ", path);
  files.begin(options.run.overwrite);
  return train(options, origin, nullptr, text, files);
}

void add_model_options(CLI::App& command, TrainOptions& options) {
  nn::GptConfig& model = options.recipe.model;
  begin_group(command, "Model");
  // Added before the others, since options take effect in the order they are added: those change the preset.
  add_choice(command, "--preset", options.preset, nn::gpt_preset_names(),
             "A model by its name, with the characters of the text as tokens; other options change it",
             [&model](const std::string& name) { model = nn::gpt_preset(name); });
  add_whole_number(command, "--block", model.max_len, 1, 65536, "Characters that the model sees at once");
  add_whole_number(command, "--layers", model.num_layers, 1, 96, "Layers");
  add_whole_number(command, "--heads", model.layer.num_heads, 1, 96, "Attention heads; must divide the width");
  add_whole_number(command, "--d-model", model.layer.d_model, 1, 12288, "Width of the model");
  add_whole_number(command, "--d-ff", model.layer.d_ff, 1, 49152, "Width inside the feed-forward networks");
  add_number(command, "--dropout", model.layer.dropout, 0, 0.99, "Probability of dropping a unit");
  add_switch(command, "bias", model.layer.bias, "Biases in linear maps and norms");
  add_flag(command, "--untied", options.untied, "A matrix of its own for the head, instead of the embedding's");
}

void add_training_options(CLI::App& command, LmRecipe& recipe) {
  begin_group(command, training_group);
  add_whole_number(command, "--batch", recipe.batch, 1, 65536, "Blocks in a batch");
  add_flag(command, "--replacement", recipe.replacement,
           "Draw each block from anywhere in the text, instead of each block once per epoch");
  add_recipe_options(command, recipe, {.warmup = "a twentieth of all, 100 at most"});
  begin_group(command, evaluation_group);
  add_whole_number(command, "--estimate-batches", recipe.estimate_batches, 1, 1000000,
                   "Batches of an evaluation, which estimates the loss on the last tenth of the text");
}

void add_train(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& command = add_command(
      lm, "train",
      "Learn a text; the defaults are nanoGPT's recipe for a CPU, with shuffled blocks and an averaged model",
      "Examples:\n  orrery lm train --save shakespeare.safetensors --seed 3\n"
      "  orrery lm train --resume shakespeare.safetensors");
  add_config(command);
  CLI::Option* text = add_text(command, "FILE", options->file, "", "Text to learn, UTF-8; without it tinyshakespeare");
  add_model_options(command, *options);
  add_training_options(command, options->recipe);
  add_run_options(command, options->run, {text});
  when_run(command, exit_code, [options] {
    set_up(options->run);
    return options->run.resume.empty() ? begin(*options) : resume(*options);
  });
}

}  // namespace

void add_lm(CLI::App& program, int& exit_code) {
  CLI::App& lm = add_command(program, "lm", "A language model: train a GPT on a text, sample from it, evaluate it",
                             "Example:\n  orrery lm train\nEach has its own --help.");
  add_train(lm, exit_code);
  add_lm_sample(lm, exit_code);
  add_lm_eval(lm, exit_code);
  needs_sub_command(lm);
}

}  // namespace orrery
