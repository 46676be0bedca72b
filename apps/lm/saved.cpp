// Chapter 9. A saved model: load it with its alphabet, then sample from it or evaluate it.
//
// Serves: nn/models/gpt.h
#include "apps/lm/saved.h"

#include <unistd.h>

#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/lm/checkpoint.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "core/machine/parallel.h"
#include "nn/generate/decoding.h"

namespace orrery {
namespace {

struct SampleOptions {
  nn::SamplingOptions sampling;
  std::string load, prompt;
  i64 tokens = 500, seed = 1, threads = 1;
};

struct EvalOptions {
  std::string load, file;
  bool whole = false;
  i64 threads = 1;
};

int write_on(const SampleOptions& options) {
  set_threads(static_cast<int>(options.threads));
  const LmModel saved = load_lm(options.load);
  const Alphabet& alphabet = saved.alphabet;
  const std::vector<i32> prompt = options.prompt.empty()
                                      ? alphabet.beginning()
                                      : within("--prompt", [&] { return alphabet.tokens(options.prompt); });
  const i64 read = std::min(static_cast<i64>(prompt.size()), saved.model.config.max_len);
  print_start(std::cerr, {.seed = options.seed, .parameters = saved.model.config.parameter_count()});
  if (read < static_cast<i64>(prompt.size()))
    std::cerr << "the model sees at most " << read << " characters: only the last " << read << " of the prompt count\n";
  const Interrupt interrupt;
  Rng rng(static_cast<u64>(options.seed));
  i64 written = 0;
  const Stopwatch watch;
  std::cout << for_reader(options.prompt, STDOUT_FILENO) << std::flush;
  nn::generate(saved.model, prompt, options.tokens, options.sampling, rng, [&](i32 token) {
    std::cout << for_reader(alphabet.character(token), STDOUT_FILENO) << std::flush;
    ++written;
    return std::cout.good() && !interrupt.requested();
  });
  std::cout << std::endl;
  if (written > 0)
    std::cerr << written << (written == 1 ? " token, " : " tokens, ")
              << std::llround(static_cast<double>(written) / watch.seconds()) << " tokens/s\n";
  return interrupt.requested() ? interrupted : done;
}

int judge(const EvalOptions& options) {
  set_threads(static_cast<int>(options.threads));
  const LmModel saved = load_lm(options.load);
  const std::string path = text_path(options.file), all = read_text(path);
  constexpr i64 shortest = 1;  // block: `loss_over` accepts texts that are too short for training
  const Tensor text = within("read " + path, [&] {
    return options.whole ? tokens_of(all, saved.alphabet) : text_data(all, shortest, saved.alphabet).validation;
  });
  check(text.count() > 1, "lm", path, " is too short: it needs at least two characters");
  print_start(std::cerr, {.parameters = saved.model.config.parameter_count()});
  const Stopwatch watch;
  const double loss = loss_over(saved.model, text);
  std::cerr << "evaluated on " << (options.whole ? "all " : "the last ") << text.count() << " characters of "
            << harmless(path) << " in " << std::fixed << std::setprecision(1) << watch.seconds() << " s\n";
  std::cout << std::fixed << std::setprecision(4) << (options.whole ? "loss " : "validation loss ") << loss << " nats, "
            << loss / std::log(2.0) << " bits per character, perplexity " << std::exp(loss) << std::endl;
  return done;
}

}  // namespace

void add_lm_sample(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<SampleOptions>();
  CLI::App& command =
      add_command(lm, "sample", "Continue a prompt with a model from `lm train --save`",
                  "Example:\n  orrery lm sample --load shakespeare.safetensors --prompt ROMEO: --temperature 0.8");
  require(add_file(command, "--load", options->load, "The model"));
  add_text(command, "--prompt", options->prompt, "TEXT", "Text to continue; without it, a new line that is not shown");
  add_whole_number(command, "--tokens", options->tokens, 0, 1000000000, "Characters to write");
  add_number(command, "--temperature", options->sampling.temperature, 0, 1000,
             "Below 1 prefers likely characters, above 1 others too; 0 always takes the likeliest");
  add_whole_number(command, "--top-k", options->sampling.top_k, 0, 1000000, "Draw from the k likeliest; 0: from all");
  add_number(command, "--top-p", options->sampling.top_p, 1e-9, 1,
             "Draw from the fewest likeliest whose probabilities reach p");
  add_seed(command, options->seed);
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return write_on(*options); });
}

void add_lm_eval(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App& command = add_command(lm, "eval", "Evaluate a model from `lm train --save` on a text",
                                  "Examples:\n  orrery lm eval --load shakespeare.safetensors\n"
                                  "  orrery lm eval --load shakespeare.safetensors --whole sonnets.txt");
  require(add_file(command, "--load", options->load, "The model"));
  add_text(command, "FILE", options->file, "",
           "Text to evaluate on; as in training, only its last tenth counts; without it tinyshakespeare");
  add_flag(command, "--whole", options->whole, "The whole text counts: for a text that the model was not trained on");
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return judge(*options); });
}

}  // namespace orrery
