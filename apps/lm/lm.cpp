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
#include "core/files/crc32c.h"
#include "core/machine/parallel.h"
#include "core/products/blas.h"

namespace orrery {
namespace {

constexpr i64 glimpse = 60, last_sample = 300;  // characters shown at each estimate, and at the end

struct TrainOptions {
  LmRecipe recipe;
  std::string preset = "nanogpt", file, save, resume;
  bool hash = false, untied = false, overwrite = false;
  i64 threads = 1, tiles = 1;
};

// Checks options against each other, before the training starts.
void check_options(const LmRecipe& recipe) {
  if (recipe.model.layer.d_model % recipe.model.layer.num_heads != 0)
    usage_error("--heads", "must divide --d-model, " + std::to_string(recipe.model.layer.d_model));
  if (recipe.warmup >= recipe.steps)
    usage_error("--warmup",
                "(" + std::to_string(recipe.warmup) + ") must be below --steps, " + std::to_string(recipe.steps));
}

// A text on one line: new lines and control characters are shown as symbols.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? "\u21b5" : std::string(1, c);
  return harmless(line);
}

std::string estimate_line(i64 step, double estimate, bool best) {
  std::ostringstream line;
  line << "step " << step << ": validation estimate " << std::fixed << std::setprecision(4) << estimate
       << (best ? ", the lowest so far" : "");
  return line.str();
}

// What `written` makes of a sample of the model. If sampling fails, the training continues, and nothing else is lost.
std::string written_by(const LmTraining& training, i64 characters,
                       const std::function<std::string(const std::string&)>& written) {
  try {
    return written(training.sample(characters));
  } catch (const Error& error) { return std::string("it cannot write: ") + error.what(); }
}

std::string glimpse_of(const LmTraining& training) {
  return "  " +
         written_by(training, glimpse, [](const std::string& text) { return "it writes: " + on_one_line(text); });
}

// Trains to the end or to Ctrl-C. Saves at each estimate and when it is stopped.
void run_steps(LmTraining& training, const LmOrigin& origin, LmFiles& files, const Interrupt& interrupt) {
  const LmRecipe& recipe = origin.recipe;
  Progress progress(std::cerr, terminal_of(STDERR_FILENO), recipe.steps, training.steps_done());
  i64 kept_step = training.steps_done();  // without a step there is nothing to keep
  const auto keep = [&] {
    if (files.keep(origin, training)) return void(kept_step = training.steps_done());
    progress.note("not saved: " + files.problem() + "; the training continues");
  };
  while (training.steps_done() < recipe.steps && !interrupt.requested()) {
    const double loss = training.step();
    const i64 step = training.steps_done();
    progress.update({.step = step, .loss = loss, .rate = recipe.rate_of(step), .tokens = training.tokens_per_step()});
    if (step % recipe.estimate_every != 0 && step != recipe.steps) continue;
    const double estimate = training.estimate();
    progress.note(estimate_line(step, estimate, training.best_step() == step));
    progress.note(glimpse_of(training));
    if (std::isfinite(estimate)) keep();  // otherwise the last saved state is better, and the next step reports why
  }
  if (kept_step != training.steps_done()) keep();  // stopped
}

// Prints a sample of the model and its losses, after a training that has ended or was stopped.
void report(const TrainOptions& options, LmTraining& training, const Stopwatch& watch) {
  const std::string hash = training.hash();
  const double loss = training.finish_with_best();
  std::cout << written_by(training, last_sample, [](const std::string& text) {
    return for_reader(text, STDOUT_FILENO);
  }) << '\n';
  if (options.hash) std::cout << "hash " << hash << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss;
  if (training.best_step() > 0)
    std::cout << " (best estimate " << training.best_estimate() << " at step " << training.best_step() << ')';
  std::cout << " in " << std::setprecision(1) << watch.seconds() << " s" << std::endl;
}

// How far an unfinished training is, and how to resume it.
void print_stopped(const LmTraining& training, const LmFiles& files, bool failed_on_its_way) {
  std::cerr << "stopped after step " << training.steps_done() << " of " << training.recipe().steps;
  if (!files.used()) std::cerr << "; without --save it cannot be resumed";
  // A step that failed would fail again.
  if (!failed_on_its_way && training.steps_done() > 0 && std::filesystem::exists(files.resume()))
    std::cerr << "; to resume: orrery lm train --resume " << harmless(shell_quoted(files.model()));
  std::cerr << std::endl;
}

// Saves the model. If the training is unfinished, says how to resume it.
void save(LmTraining& training, LmFiles& files, bool failed_on_its_way) {
  const bool finished = training.steps_done() == training.recipe().steps;
  files.end(training, finished);
  files.check_kept();
  if (files.used()) std::cerr << "saved to " << harmless(files.model()) << '\n';
  if (!finished) print_stopped(training, files, failed_on_its_way);
}

// Trains from `state`, or from the beginning.
int train(const TrainOptions& options, const LmOrigin& origin, const LmState* state, const std::string& text,
          LmFiles& files) {
  const Stopwatch watch;
  const LmRecipe& recipe = origin.recipe;
  const TextData data = within("read " + origin.text, [&] { return text_data(text, recipe.model.max_len); });
  nn::GptConfig model = recipe.model;
  model.vocab_size = data.alphabet.size();
  // For each parameter: itself, its gradient, AdamW's two moments, the best so far, and perhaps its average.
  check_memory("lm", {.parameters = model.parameter_count(),
                      .copies = recipe.average > 0 ? 6 : 5,
                      .kept = kept_numbers(model, recipe.batch, model.max_len)});
  files.check_room(model.parameter_count());
  std::cerr << "text " << harmless(origin.text) << ": " << data.training.count() << " + " << data.validation.count()
            << " characters of " << data.alphabet.size() << " kinds\n";
  const Interrupt interrupt;
  LmTraining training(recipe, data);
  if (state) training.load_state(*state);
  print_start(
      std::cerr,
      {.seed = recipe.seed, .parameters = training.model().parameter_count(), .expected_seconds = training.measure()});
  if (state) std::cerr << "resuming after step " << state->steps_done << " of " << recipe.steps << '\n';
  const i64 done_before = training.steps_done();
  const std::exception_ptr failure = failure_of([&] { run_steps(training, origin, files, interrupt); });
  if (failure && training.steps_done() == 0) std::rethrow_exception(failure);            // nothing to save
  if (!failure && training.steps_done() == done_before && done_before < recipe.steps) {  // the files stay as they are
    print_stopped(training, files, false);
    return interrupted;
  }
  end_training(
      failure, [&] { report(options, training, watch); }, [&] { save(training, files, failure != nullptr); });
  return training.steps_done() == recipe.steps ? done : interrupted;
}

int resume(const TrainOptions& options) {
  LmFiles files(options.resume);
  files.go_on();
  LmCheckpoint checkpoint = read_checkpoint(files);
  if (!options.file.empty()) checkpoint.origin.text = options.file;
  const std::string text = read_text(checkpoint.origin.text);
  check(crc32c(std::as_bytes(std::span(text))) == checkpoint.origin.text_checksum, "lm", checkpoint.origin.text,
        " is not the text that this training began with");
  check(checkpoint.origin.tiles >= 1 && checkpoint.origin.tiles <= most_tiles, "lm", files.resume(), " asks for ",
        checkpoint.origin.tiles, " tiles");
  set_least_tiles(checkpoint.origin.tiles);
  if (checkpoint.origin.kernel != blas_info().kernel)
    std::cerr << "warning: this training began with OpenBLAS's kernel " << harmless(checkpoint.origin.kernel)
              << "; its bits will not be those of an uninterrupted one\n";
  return train(options, checkpoint.origin, &checkpoint.state, text, files);
}

int begin(TrainOptions options) {
  options.recipe.model.tied = !options.untied;
  check_options(options.recipe);
  set_least_tiles(static_cast<int>(options.tiles));
  const std::string path = std::filesystem::absolute(text_path(options.file)).string(), text = read_text(path);
  const LmOrigin origin{.recipe = options.recipe,
                        .text = path,
                        .text_checksum = crc32c(std::as_bytes(std::span(text))),
                        .tiles = static_cast<int>(options.tiles),
                        .kernel = blas_info().kernel};
  LmFiles files(options.save);
  files.begin(origin.text, options.overwrite);
  return train(options, origin, nullptr, text, files);
}

void add_model_options(CLI::App& command, TrainOptions& options) {
  nn::GptConfig& model = options.recipe.model;
  begin_group(command, "Model");
  // Added first, since options take effect in the order they are added: the other options change the preset.
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

void add_recipe_options(CLI::App& command, LmRecipe& recipe) {
  begin_group(command, "Training");
  add_whole_number(command, "--steps", recipe.steps, 1, 100000000, "Updates");
  add_whole_number(command, "--batch", recipe.batch, 1, 65536, "Blocks in a batch");
  add_number(command, "--rate", recipe.rate, 0, 100, "Largest learning rate");
  add_number(command, "--last-rate", recipe.last_rate, 0, 100, "Where the rate's cosine ends");
  show_default(add_whole_number(command, "--warmup", recipe.warmup, 0, 100000000,
                                "Steps in which the rate rises; if not given, a twentieth of all, 100 at most"),
               "");
  add_number(command, "--beta1", recipe.beta1, 0, 0.999999, "AdamW's decay of the mean of the gradient");
  add_number(command, "--beta2", recipe.beta2, 0, 0.999999, "AdamW's decay of the mean of its square");
  add_number(command, "--weight-decay", recipe.weight_decay, 0, 100, "Weight decay, only of matrices");
  add_number(command, "--clip", recipe.clip, 0, 1e6, "Largest norm of the gradient; 0 does not clip");
  add_number(
      command, "--average", recipe.average, 0, 0.999999,
      "Evaluate and save an exponential mean of the parameters over the steps, with this decay; 0: the last ones");
  add_flag(command, "--replacement", recipe.replacement,
           "Draw each block from anywhere in the text, instead of each block once per epoch");
  add_whole_number(command, "--estimate-every", recipe.estimate_every, 1, 100000000,
                   "Steps between estimates of the validation loss; then the best model is saved");
  add_whole_number(command, "--estimate-batches", recipe.estimate_batches, 1, 1000000, "Batches of an estimate");
  add_seed(command, recipe.seed);
}

void add_train(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& command = add_command(
      lm, "train",
      "Learn a text; the defaults are nanoGPT's recipe for a CPU, with shuffled blocks and an averaged model",
      "Examples:\n  orrery lm train --save shakespeare.safetensors --seed 3\n"
      "  orrery lm train --resume shakespeare.safetensors");
  add_model_options(command, *options);
  add_recipe_options(command, options->recipe);
  begin_group(command, "Run");
  add_tiles(command, options->tiles);
  add_file(command, "--save", options->save,
           "Save the best model in this file, and the state of an unfinished training in FILE.resume");
  add_flag(command, "--overwrite", options->overwrite, "Replace an existing model or unfinished training");
  const std::vector<CLI::Option*> of_a_new_training = options_of(command);
  exclude(
      add_file(command, "--resume", options->resume,
               "Continue the training that --save FILE started, with its options: none of those above may be given"),
      of_a_new_training);
  add_text(command, "FILE", options->file, "", "Text to learn, UTF-8; without it tinyshakespeare");
  add_threads(command, options->threads);
  add_flag(command, "--hash", options->hash, "Print a fingerprint of losses, parameters and the optimiser's state");
  when_run(command, exit_code, [options] {
    set_threads(static_cast<int>(options->threads));
    return options->resume.empty() ? begin(*options) : resume(*options);
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
