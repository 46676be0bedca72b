// Chapter 9. `orrery lm sample` and `orrery lm eval`: sampling from a saved model, and evaluating it.
//
//   sample   writes token after token, each drawn from the model's probabilities given all earlier ones
//            (nn/generate/sampling.h)
//   eval     the mean over a text of -ln p(token | the earlier ones in its block): in nats, and as perplexity (its
//            exponential). A perplexity of 7 means that each token is as uncertain as a choice among 7 equally likely
//            ones. Models with other tokens are compared by bits: the sum over all tokens, divided by ln 2 and by the
//            number of characters, or of bytes.
#include "apps/tasks/lm/training.h"

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "apps/data/text_file.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/tasks/tasks.h"
#include "apps/training/training_files.h"
#include "core/files/json.h"
#include "core/files/shards.h"
#include "core/machine/parallel.h"
#include "nn/files/gpt_files.h"
#include "nn/generate/beam_search.h"
#include "nn/generate/decoding.h"

namespace orrery {
namespace {

struct SampleOptions {
  nn::SamplingOptions sampling;
  LmSource load;
  nn::Constraints constraints;
  std::string prompt;
  i64 tokens = 500, beam = 0, n_best = 1, seed = 1, threads = 1;  // beam 0: tokens are drawn
  CLI::Option* tokens_option = nullptr;
};

struct EvalOptions {
  LmSource load;
  std::vector<std::string> files;
  bool whole = false;
  i64 stride = 0, threads = 1;  // stride 0: the model's length
};

// Joins bytes into whole characters, so that a terminal never gets a part of one.
class CharacterWriter {
 public:
  void write(const std::string& bytes) {
    waiting_ += bytes;
    const size_t whole = whole_characters(waiting_);
    std::cout << for_reader(waiting_.substr(0, whole), STDOUT_FILENO) << std::flush;
    waiting_.erase(0, whole);
  }
  // Writes what is left, which is not a whole character.
  void end() { std::cout << for_reader(waiting_, STDOUT_FILENO) << std::endl; }

 private:
  std::string waiting_;
};

// Prints the likeliest continuations that beam search finds.
int print_likeliest(const LmModel& saved, const SampleOptions& options, std::vector<i32> prompt) {
  const Tokenizer& tokenizer = saved.tokenizer;
  const i64 longest = saved.model.config.max_len;
  if (options.n_best > options.beam) usage_error("--n-best", "must be at most --beam, " + std::to_string(options.beam));
  if (options.beam > tokenizer.size())
    usage_error("--beam", "must be at most " + std::to_string(tokenizer.size()) + ", the tokens of the model");
  const i64 room = std::max<i64>(1, longest - std::ssize(prompt) + 1),
            tokens = is_given(options.tokens_option) ? options.tokens : std::min(options.tokens, room);
  if (tokens < 1 || tokens > longest)
    usage_error("--tokens", "must be from 1 to " + std::to_string(longest) + ", the model's length, with --beam");
  const std::vector<i32> whole_prompt = prompt;
  const i64 most = longest - tokens + 1;
  if (std::ssize(prompt) > most) {
    std::cerr << "only the last " << most << " of the prompt's " << prompt.size() << ' ' << tokenizer.name()
              << " fit beside those to write\n";
    prompt.erase(prompt.begin(), prompt.end() - most);
  }
  const Interrupt interrupt;
  nn::BeamOptions search{.beam = options.beam,
                         .n_best = options.n_best,
                         .constraints = options.constraints,
                         .bos = prompt.back(),
                         .eos = tokenizer.end_of_text().value_or(-1),
                         .stopped = [&] { return interrupt.requested(); }};
  search.constraints.prompt = whole_prompt;
  const auto decoder = nn::stepwise_decoder(saved.model, std::span(prompt).first(prompt.size() - 1), longest);
  const auto found = nn::n_best_search(*decoder, std::vector<i64>{tokens}, search);
  if (found.empty()) return interrupted;
  for (const nn::Hypothesis& each : found[0]) {
    std::string text = options.prompt;
    for (const i32 token : each.tokens)
      if (token != search.eos) text += tokenizer.text(token);
    if (options.n_best > 1)
      std::cout << numbers("%.4f\t", each.score)
                << (isatty(STDOUT_FILENO) == 1 ? json_in_ascii(Json(text)) : json_text(Json(text))) << '\n';
    else
      std::cout << for_reader(text, STDOUT_FILENO) << '\n';
  }
  std::cout.flush();
  return done;
}

int sample(const SampleOptions& options) {
  set_threads(static_cast<int>(options.threads));
  const LmModel saved = load_lm(options.load);
  const Tokenizer& tokenizer = saved.tokenizer;
  const std::vector<i32> prompt = options.prompt.empty()
                                      ? tokenizer.beginning()
                                      : within("--prompt", [&] { return tokenizer.tokens(options.prompt); });
  const i64 read = std::min(static_cast<i64>(prompt.size()), saved.model.config.max_len);
  if (options.n_best > 1 && options.beam == 0) usage_error("--n-best", "needs --beam");
  if (options.beam > 0) {
    print_start(std::cerr, {.parameters = saved.model.config.parameter_count()});
    return print_likeliest(saved, options, prompt);
  }
  print_start(std::cerr, {.seed = options.seed, .parameters = saved.model.config.parameter_count()});
  if (read < static_cast<i64>(prompt.size()))
    std::cerr << "the model sees at most " << read << ' ' << tokenizer.name() << ": only the last " << read
              << " of the prompt count\n";
  const Interrupt interrupt;
  Rng rng(static_cast<u64>(options.seed));
  i64 written = 0;
  CharacterWriter writer;
  const Stopwatch watch;
  std::cout << for_reader(options.prompt, STDOUT_FILENO) << std::flush;
  const auto write = [&](i32 token) {
    writer.write(tokenizer.text(token));
    ++written;
    return std::cout.good() && !interrupt.requested();
  };
  nn::generate(saved.model, prompt, options.tokens, options.sampling, rng, write, options.constraints);
  const double seconds = watch.seconds();
  writer.end();
  if (written > 0)
    std::cerr << written << (written == 1 ? " token, " : " tokens, ")
              << std::llround(static_cast<double>(written) / seconds) << " tokens/s\n";
  return interrupt.requested() ? interrupted : done;
}

// "4096/111539 characters  12 s left"
std::string progress_line(i64 counted, i64 all, std::string_view tokens, double seconds) {
  const double left = seconds / static_cast<double>(counted) * static_cast<double>(all - counted);
  return std::to_string(counted) + '/' + std::to_string(all) + ' ' + std::string(tokens) + "  " + duration(left) +
         " left";
}

int evaluate(const EvalOptions& options) {
  set_threads(static_cast<int>(options.threads));
  const LmModel saved = load_lm(options.load);
  if (options.stride > saved.model.config.max_len)
    usage_error("--stride", "must be at most the model's length, " + std::to_string(saved.model.config.max_len));
  const std::vector<std::string> paths = text_paths(options.files);
  const std::string name = paths[0] + (paths.size() > 1 ? " and " + std::to_string(paths.size() - 1) + " more" : "");
  const FileText file = [&] {
    const Phase phase("cutting " + name + " into tokens");
    return read_tokens(paths, saved.tokenizer);
  }();
  check(options.whole || file.text.count() > 10, "lm", "the text of ", name, " is too short: of its ",
        file.text.count(), ' ', saved.tokenizer.name(),
        " only the last tenth would count, and at least two must; --whole takes all");
  constexpr i64 least_block = 1;  // unlike a training, `loss_over` needs no more than two tokens
  const auto last_part = [&] { return split(file, saved.tokenizer, least_block).validation; };
  const Text text = options.whole ? file.text : within("read " + name, last_part);
  check(text.count() > 1, "lm", "the text of ", name, " is too short: it needs at least two ", saved.tokenizer.name());
  print_start(std::cerr, {.parameters = saved.model.config.parameter_count()});
  const Stopwatch watch;
  LiveLine live(std::cerr, terminal_of(STDERR_FILENO));
  const double loss = loss_over(saved.model, text, options.stride, [&](i64 counted) {
    live.show(progress_line(counted, text.count() - 1, saved.tokenizer.name(), watch.seconds()));
  });
  live.clear();
  std::cerr << "evaluated on " << (options.whole ? "all " : "the last ") << text.count() << ' '
            << saved.tokenizer.name() << " of " << harmless(name) << " in " << std::fixed << std::setprecision(1)
            << watch.seconds() << " s\n";
  std::cout << std::fixed << std::setprecision(4) << (options.whole ? "loss " : "validation loss ") << loss << " nats, "
            << in_bits(loss, length_of(text, saved.tokenizer), file.is_utf8) << ", perplexity " << std::exp(loss)
            << std::endl;
  return done;
}

void add_source(CLI::App& command, LmSource& source) {
  add_loaded_gpt(command, source.path, source.heads);
  add_file(command, "--characters", source.characters,
           "Only for a model of another program that has characters as tokens, such as nanoGPT's shakespeare_char: the "
           "text that it was trained on, which has these characters");
  add_text(command, "--separator", source.separator, "LINE",
           "Only for a model that keeps none, such as a published GPT-2: the line that stands between documents, as in "
           "`lm train`");
}

}  // namespace

std::optional<Tokenizer> tokens_of_model(const Metadata& metadata, const std::string& path) {
  if (Tokenizer::is_in(metadata)) return within("load " + path, [&] { return Tokenizer::of_metadata(metadata); });
  const std::filesystem::path model = model_file(path);
  const std::filesystem::path vocab = model.parent_path() / "vocab.json", merges = model.parent_path() / "merges.txt";
  std::error_code absent;
  if (!std::filesystem::exists(vocab, absent) && !std::filesystem::exists(merges, absent)) return std::nullopt;
  return Tokenizer(BytePairs::read(vocab.string(), merges.string()));
}

LmModel load_lm(const LmSource& source) {
  const auto& [path, heads, characters, separator] = source;
  const Metadata metadata = read_safetensors_metadata(path);
  check_is_finished("lm", path, metadata);
  const std::optional<Tokenizer> tokens = tokens_of_model(metadata, path);
  check(
      tokens || !characters.empty(), "lm", path,
      " was not saved by orrery lm (it does not say what its tokens are). If they are characters, as in nanoGPT's "
      "shakespeare_char, --characters TEXT names the text; GPT-2's own are read from vocab.json and merges.txt beside "
      "it");
  check(!tokens || characters.empty(), "lm", path, " says what its tokens are: leave --characters out");
  LmModel saved{tokens ? *tokens : Tokenizer(Alphabet(read_text(characters))), nn::load_gpt(path, heads)};
  check(saved.model.config.vocab_size == saved.tokenizer.size(), "lm", path, " holds a model of ",
        saved.model.config.vocab_size, " tokens and a list of ", saved.tokenizer.size());
  check(separator.empty() || !saved.tokenizer.separator(), "lm", path,
        " says what its separator is: leave --separator out");
  if (!separator.empty()) within("--separator", [&] { saved.tokenizer.separate_at(source.separator); });
  return saved;
}

void add_loaded_gpt(CLI::App& command, std::string& path, i64& heads) {
  require(take_folders(
      add_file(command, "--load", path,
               "The model, or the folder of --save FOLDER/; also a GPT-2 of Hugging Face or nanoGPT as safetensors, in "
               "one file, or in a folder with shards and their model.safetensors.index.json")));
  CLI::Option* option = add_whole_number(command, "--heads", heads, 1, 1 << 20,
                                         "The heads of each attention, if the file of another program does not say it");
  show_default(option, "what the file says");
}

void add_lm_sample(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<SampleOptions>();
  CLI::App& command =
      add_command(lm, "sample", "Continue a prompt with a model from `lm train --save`",
                  "Example:\n  orrery lm sample --load shakespeare.safetensors --prompt ROMEO: --top-k 40");
  add_source(command, options->load);
  add_text(command, "--prompt", options->prompt, "TEXT", "Text to continue; without it, a new line that is not shown");
  options->tokens_option =
      add_whole_number(command, "--tokens", options->tokens, 0, 1000000000,
                       "Tokens to write; with --beam, if not given, no more than the model sees beside the prompt");
  const std::vector<CLI::Option*> of_drawing = added_by(command, [&] {
    add_number(command, "--temperature", options->sampling.temperature, 0, 1000,
               "Below 1 prefers likely tokens, above 1 others too; 0 always takes the likeliest");
    add_whole_number(command, "--top-k", options->sampling.top_k, 0, 1000000, "Draw from the k likeliest; 0: from all");
    add_number(command, "--top-p", options->sampling.top_p, 1e-9, 1,
               "Draw from the fewest likeliest whose probabilities reach p");
    add_seed(command, options->seed);
  });
  add_constraints(command, options->constraints);
  CLI::Option* beam = add_whole_number(command, "--beam", options->beam, 1, 1000,
                                       "Do not draw: write what beam search with so many hypotheses finds likeliest");
  show_default(beam, "");
  exclude(beam, of_drawing);
  add_whole_number(command, "--n-best", options->n_best, 1, 1000,
                   "With --beam: write the N likeliest, the best first, each on a line: the mean of its tokens' "
                   "log-probabilities, a tab, and the text as JSON");
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return sample(*options); });
}

void add_lm_eval(CLI::App& lm, int& exit_code) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App& command = add_command(lm, "eval", "Evaluate a model from `lm train --save` on a text",
                                  "Examples:\n  orrery lm eval --load shakespeare.safetensors\n"
                                  "  orrery lm eval --load shakespeare.safetensors --whole --stride 16 sonnets.txt");
  add_source(command, options->load);
  add_files(command, "FILE", options->files,
            "Text to evaluate on; several files are one text, and without any it is tinyshakespeare. As in training, "
            "only the last tenth counts, a million tokens at most, unless --whole is given");
  add_flag(command, "--whole", options->whole, "The whole text counts: for a text that the model was not trained on");
  CLI::Option* stride = add_whole_number(
      command, "--stride", options->stride, 1, 65536,
      "Blocks begin this many tokens apart, and only this many at the end of each count. So each token, except at the "
      "text's beginning, is predicted from at least as many as the model's length minus the stride. A smaller stride "
      "takes longer");
  show_default(stride, "the model's length");
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return evaluate(*options); });
}

}  // namespace orrery
