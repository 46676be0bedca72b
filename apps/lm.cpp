// Chapter 9. `orrery lm`: a GPT learns a text character by character, and writes on.
//
//   orrery lm train --save shakespeare.safetensors
//   orrery lm sample --load shakespeare.safetensors --prompt ROMEO:
// Read next: apps/lm_training.h
#include <unistd.h>

#include <filesystem>
#include <iomanip>
#include <iostream>

#include "apps/command.h"
#include "apps/interrupt.h"
#include "apps/lm_training.h"
#include "apps/machine.h"
#include "apps/progress.h"
#include "apps/stopwatch.h"
#include "core/parallel.h"
#include "nn/decoding.h"
#include "nn/gpt_files.h"

namespace orrery {
namespace {

const std::string alphabet_key = "alphabet";  // in the metadata of a saved model
constexpr std::string_view shipped_text = "tinyshakespeare.txt";

struct TrainOptions {
  LmRecipe recipe;
  std::string file, save;
  bool hash = false;
  i64 threads = 1;
};

struct SampleOptions {
  nn::SamplingOptions sampling;
  std::string load, prompt;
  i64 tokens = 500, seed = 1, threads = 1;
};

// The file to learn from: as given, or the text that comes with the program.
std::string text_path(const std::string& given) {
  if (!given.empty()) return given;
  const std::filesystem::path shipped = std::filesystem::path(ORRERY_DATA_FOLDER) / shipped_text;
  for (const std::filesystem::path& path : {std::filesystem::path("apps/data") / shipped_text, shipped})
    if (std::filesystem::exists(path)) return path.string();
  usage_error("FILE", "is missing, and the text that comes with the program is not at " + shipped.string());
}

std::string estimate_line(i64 step, double estimate) {
  std::ostringstream line;
  line << "step " << step << ": validation estimate " << std::fixed << std::setprecision(4) << estimate;
  return line.str();
}

// Trains to the end or to Ctrl-C; returns the lowest estimate, of which there is one at least.
double run_steps(LmTraining& training, const LmRecipe& recipe, const Interrupt& interrupt) {
  Progress progress(std::cerr, terminal_of(STDERR_FILENO), recipe.steps);
  double best = std::numeric_limits<double>::infinity();
  bool last = false;
  while (!last) {
    const double loss = training.step();
    const i64 step = training.steps_done();
    last = step >= recipe.steps || interrupt.requested();
    progress.update({.step = step, .loss = loss, .rate = recipe.rate_of(step), .tokens = training.tokens_per_step()});
    if (!last && step % recipe.estimate_every != 0) continue;
    const double estimate = training.estimate();
    best = std::min(best, estimate);
    progress.note(estimate_line(step, estimate));
  }
  return best;
}

int train(const TrainOptions& options) {
  const Stopwatch watch;
  const LmRecipe& recipe = options.recipe;
  set_threads(static_cast<int>(options.threads));
  if (recipe.model.d_model % recipe.model.num_heads != 0)
    usage_error("--heads", "must divide --d-model, " + std::to_string(recipe.model.d_model));
  if (recipe.warmup >= recipe.steps)
    usage_error("--warmup",
                "(" + std::to_string(recipe.warmup) + ") must be below --steps, " + std::to_string(recipe.steps));
  if (!options.save.empty()) check_can_save("lm", options.save);
  const std::string path = text_path(options.file);
  const TextData data = text_data(read_text(path), recipe.model.max_len);
  const Interrupt interrupt;
  LmTraining training(recipe, data);
  std::cerr << "text " << path << ": " << data.training.count() << " + " << data.validation.count() << " characters of "
            << data.alphabet.size() << " kinds\n";
  print_start(
      std::cerr,
      {.seed = recipe.seed, .parameters = training.model().parameter_count(), .expected_seconds = training.measure()});
  const double estimate = run_steps(training, recipe, interrupt);
  if (!options.save.empty()) {
    nn::save_gpt(training.model(), options.save, {{alphabet_key, data.alphabet.text()}});
    std::cerr << "saved to " << options.save << '\n';
  }
  const double loss = training.validation_loss();
  if (options.hash) std::cout << "hash " << training.hash() << '\n';
  std::cout << std::fixed << std::setprecision(4) << "validation loss " << loss << " (estimate " << estimate << ") in "
            << std::setprecision(1) << watch.seconds() << " s" << std::endl;
  return interrupt.requested() ? interrupted : done;
}

// Without a prompt the model begins after a new line, or what stands first in its alphabet.
std::vector<i32> begin(const Alphabet& alphabet, const std::string& prompt) {
  if (!prompt.empty()) return alphabet.tokens(prompt);
  const std::string characters = alphabet.text();
  return characters.find('\n') != std::string::npos ? alphabet.tokens("\n") : std::vector<i32>{0};
}

int write_text_on(const SampleOptions& options) {
  set_threads(static_cast<int>(options.threads));
  const Metadata metadata = read_safetensors_metadata(options.load);
  const auto found = metadata.find(alphabet_key);
  check(found != metadata.end(), "lm", options.load, " was not saved by orrery lm (it has no ", alphabet_key, ')');
  const Alphabet alphabet(found->second);
  const nn::Gpt model = nn::load_gpt(options.load);
  check(model.config.vocab_size == alphabet.size(), "lm", options.load, " holds a model of ", model.config.vocab_size,
        " tokens and an alphabet of ", alphabet.size());
  const std::vector<i32> prompt = begin(alphabet, options.prompt);
  const Interrupt interrupt;
  Rng rng(static_cast<u64>(options.seed));
  std::cout << options.prompt << std::flush;
  nn::generate(model, prompt, options.tokens, options.sampling, rng, [&](i32 token) {
    std::cout << alphabet.character(token) << std::flush;
    return std::cout.good() && !interrupt.requested();
  });
  std::cout << std::endl;
  return interrupt.requested() ? interrupted : done;
}

void add_model_options(CLI::App& command, nn::GptConfig& model) {
  add_whole_number(command, "--block", model.max_len, 1, 65536, "Characters that the model sees at once");
  add_whole_number(command, "--layers", model.num_layers, 1, 96, "Layers");
  add_whole_number(command, "--heads", model.num_heads, 1, 96, "Attention heads; must divide the width");
  add_whole_number(command, "--d-model", model.d_model, 1, 12288, "Width of the model");
  add_whole_number(command, "--d-ff", model.d_ff, 1, 49152, "Width inside the feed-forward networks");
  add_number(command, "--dropout", model.dropout, 0, 0.99, "Probability of dropping a unit");
  show_default(add_flag(command, "--bias,!--no-bias", model.bias, "Biases in linear maps and norms"), "--no-bias");
  show_default(add_flag(command, "--tied,!--untied", model.tied, "One matrix for the embedding and the head"),
               "--tied");
}

void add_recipe_options(CLI::App& command, LmRecipe& recipe) {
  add_whole_number(command, "--steps", recipe.steps, 1, 100000000, "Updates");
  add_whole_number(command, "--batch", recipe.batch, 1, 65536, "Blocks in a batch");
  add_number(command, "--rate", recipe.rate, 0, 100, "Largest learning rate");
  add_number(command, "--last-rate", recipe.last_rate, 0, 100, "Where the rate's cosine ends");
  add_whole_number(command, "--warmup", recipe.warmup, 0, 100000000, "Steps in which the rate rises");
  add_number(command, "--beta1", recipe.beta1, 0, 0.999999, "AdamW's memory of the gradient");
  add_number(command, "--beta2", recipe.beta2, 0, 0.999999, "AdamW's memory of its square");
  add_number(command, "--weight-decay", recipe.weight_decay, 0, 100, "Weight decay, of matrices alone");
  add_number(command, "--clip", recipe.clip, 0, 1e6, "Largest norm of the gradient; 0 does not clip");
  add_whole_number(command, "--estimate-every", recipe.estimate_every, 1, 100000000, "Steps between estimates");
  add_whole_number(command, "--estimate-batches", recipe.estimate_batches, 1, 1000000, "Batches of an estimate");
  add_seed(command, recipe.seed);
}

void add_train(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<TrainOptions>();
  CLI::App& command = add_command(lm, "train", "Learn a text; the defaults are nanoGPT's recipe for a CPU",
                                  "Example:\n  orrery lm train --save shakespeare.safetensors --seed 3");
  add_text(command, "FILE", options->file, "", "Text to learn, UTF-8; without it tinyshakespeare");
  add_model_options(command, options->recipe.model);
  add_recipe_options(command, options->recipe);
  add_threads(command, options->threads);
  add_file(command, "--save", options->save, "Write parameters, configuration and alphabet to this file");
  add_flag(command, "--hash", options->hash, "Print a fingerprint of losses, parameters and the optimiser's state");
  when_run(command, exit_code, [options] { return train(*options); });
}

void add_sample(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<SampleOptions>();
  CLI::App& command =
      add_command(lm, "sample", "Write on after a prompt, with a model from `lm train --save`",
                  "Example:\n  orrery lm sample --load shakespeare.safetensors --prompt ROMEO: --temperature 0.8");
  require(add_file(command, "--load", options->load, "The model"));
  add_any_text(command, "--prompt", options->prompt, "Text to begin with; without it, a new line that is not shown");
  add_whole_number(command, "--tokens", options->tokens, 0, 1000000000, "Characters to write");
  add_number(command, "--temperature", options->sampling.temperature, 0, 1000,
             "Below 1 keeps to the likely, above 1 dares more; 0 always takes the likeliest");
  add_whole_number(command, "--top-k", options->sampling.top_k, 0, 1000000, "Draw from the k likeliest; 0: from all");
  add_number(command, "--top-p", options->sampling.top_p, 1e-9, 1,
             "Draw from the fewest likeliest whose probabilities reach p");
  add_seed(command, options->seed);
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return write_text_on(*options); });
}

}  // namespace

void add_lm(CLI::App& program, int& exit_code) {
  CLI::App& lm = add_command(program, "lm", "A language model: train a GPT on a text, and let it write",
                             "Example:\n  orrery lm train\nEach has its own --help.");
  add_train(lm, exit_code);
  add_sample(lm, exit_code);
  needs_sub_command(lm);
}

}  // namespace orrery
