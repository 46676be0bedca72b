// Chapter 9. Reads lines, writes one translation for each, and says how fast it was and which lines it left out.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>

#include "apps/data/text_file.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/output_file.h"
#include "apps/program/progress.h"
#include "apps/program/stopwatch.h"
#include "apps/program/terminal.h"
#include "apps/tasks/tasks.h"
#include "apps/tasks/translate/decode.h"
#include "core/error.h"
#include "core/files/file.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace translate {
namespace {

// Lines that are sorted by length together: few at first, so that the first answers come soon, then twice as many each
// time, up to enough for batches of equal lengths.
constexpr size_t first_window = 16, largest_window = 2048;

struct CommandOptions {
  DecodeCommand command;  // with its words
  std::vector<std::string> load;
  std::string file, attention, prefixes;
  bool scores = false;
  i64 threads = 1;
};

// How many lines were of one kind, and the first of them, counted from 1.
struct Count {
  i64 lines = 0, first = 0;
};

class Totals {
 public:
  explicit Totals(const DecodeCommand& command) : command_(command) {}

  void add(const Translation& translation) {
    ++lines_;
    tokens_ += translation.tokens;
    cut_ += translation.is_cut;
    Count& count = counts_[static_cast<size_t>(translation.kind)];
    if (count.lines++ == 0) count.first = lines_;
    unknown_letters_ += translation.unknown_letters;
    if (translation.unknown_letters > 0 && with_unknown_.lines++ == 0) with_unknown_.first = lines_;
  }
  i64 lines() const { return lines_; }

  // One line of warning for each kind of line that has no translation, and for what the model does not know or read.
  // A prefix may be what is too long.
  void warn(const Translator& translator, bool have_prefixes) const {
    warn(LineKind::empty, " is empty", " are empty");
    warn(LineKind::not_utf8, " is not UTF-8 text", " are not UTF-8 text");
    warn(LineKind::with_nul, " has a NUL character", " have a NUL character");
    const std::string too_long =
        " too long for the model, which reads " + std::to_string(translator.most_tokens() - 1) + " tokens";
    warn(LineKind::too_long, (have_prefixes ? " or its prefix is" : " is") + too_long,
         (have_prefixes ? " or their prefixes are" : " are") + too_long);
    if (cut_ > 0)
      std::cerr << "warning: " << cut_ << (cut_ == 1 ? " line is" : " lines are") << " cut off at "
                << translator.most_tokens() - 1 << " tokens\n";
    if (unknown_letters_ == 0) return;
    const std::string unit = translator.vocabulary.is_segmented() ? " token" : " letter";
    std::cerr << "warning: the model does not know " << unknown_letters_ << unit << (unknown_letters_ == 1 ? "" : "s")
              << ", in " << with_unknown_.lines << (with_unknown_.lines == 1 ? " line (line " : " lines (line ")
              << with_unknown_.first << (with_unknown_.lines == 1 ? ")\n" : " is the first)\n");
  }
  void print_speed(double seconds) const {
    std::cerr << numbers("%.2f s", seconds) << ", " << lines_ << (lines_ == 1 ? " line" : " lines");
    if (tokens_ > 0)
      std::cerr << numbers(", %lld tokens, %.0f tokens/s, %.1f lines/s", static_cast<long long>(tokens_),
                           static_cast<double>(tokens_) / seconds, static_cast<double>(lines_) / seconds);
    std::cerr << '\n';
  }

 private:
  void warn(LineKind kind, const std::string& of_one, const std::string& of_several) const {
    const Count& count = counts_[static_cast<size_t>(kind)];
    if (count.lines == 0) return;
    if (count.lines == 1)
      std::cerr << "warning: 1 line" << of_one << " (line " << count.first << "); its " << command_.answer
                << " is an empty line\n";
    else
      std::cerr << "warning: " << count.lines << " lines" << of_several << " (line " << count.first
                << " is the first); their " << command_.answers << " are empty lines\n";
  }

  const DecodeCommand& command_;
  i64 lines_ = 0, tokens_ = 0, unknown_letters_ = 0, cut_ = 0;
  std::array<Count, 5> counts_;  // of each LineKind
  Count with_unknown_;
};

// Of the n best, each with the number of its line.
void print_n_best(const Translation& translation, i64 line) {
  for (const auto& [text, score] : translation.n_best)
    std::cout << line << '\t' << numbers("%.4f", score) << '\t' << for_reader(text, STDOUT_FILENO) << '\n';
}

void print(const Translation& translation, bool scores) {
  if (scores) {
    if (translation.kind == LineKind::translated) std::cout << numbers("%.4f", translation.log_probability);
    std::cout << '\t';
  }
  std::cout << for_reader(translation.text, STDOUT_FILENO) << '\n';
}

// Opens a file, a named pipe too, for reading.
int opened(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int reason = errno;
  check(descriptor >= 0, "read " + path, std::strerror(reason));
  return descriptor;
}

// The page of --attention: the first translated lines, as many as it holds.
class AttentionOfLines {
 public:
  AttentionOfLines(const Translator& translator, const CommandOptions& options)
      : translator_(translator),
        done_(options.command.done),
        path_(options.attention),
        page_(attention_page(translator)) {}

  void add(const Line& line, const Translation& translation) {
    if (path_.empty() || translation.kind != LineKind::translated) return;
    ++lines_;
    if (!is_full_) is_full_ = !add_attention(page_, translator_, line.text, translation.ids);
  }
  // Writes the page, and says which lines are in it if these are not all.
  void end() const {
    if (path_.empty()) return;
    const std::string path = harmless(path_);
    if (page_.pairs() == 0) {
      std::cerr << "warning: " << path
                << " is not written: " << (lines_ == 0 ? "no line was " + done_ : "the first line is too long for it")
                << '\n';
      return;
    }
    write_text(path_, page_.html());
    if (page_.pairs() < lines_)
      std::cerr << path << " shows the first " << page_.pairs() << " of " << lines_ << ' ' << done_ << " lines\n";
  }

 private:
  const Translator& translator_;
  std::string done_, path_;
  AttentionPage page_;
  i64 lines_ = 0;  // translated
  bool is_full_ = false;
};

// Errors, before any work: the page cannot be written, or would replace the lines to translate. These may also come
// from a file that a shell gives as standard input (decode < FILE).
void check_attention(const CommandOptions& options) {
  const std::string& program = options.command.program;
  check_can_write_text(program, "--attention", options.attention);
  check(!is_same_file(options.attention, options.file.empty() ? "/dev/stdin" : options.file), program, "--attention ",
        options.attention, " would write over the ", options.command.lines);
}

// Whether each line got its prefix before `stopped()` was true. Errors: there are fewer prefixes than lines; one is
// too long, not UTF-8, or has a NUL.
bool add_prefixes(std::vector<Line>& lines, LineReader& prefixes, const CommandOptions& options, i64 before,
                  const std::function<bool()>& stopped) {
  const std::string &program = options.command.program, &path = options.prefixes;
  size_t known = 0;
  while (known < lines.size()) {
    const std::vector<Line> some = prefixes.read(lines.size() - known, stopped);
    if (some.empty() && stopped()) return false;
    check(!some.empty(), program, "--prefix-file ", path, " has no line ", before + static_cast<i64>(known) + 1,
          ", but the text has one");
    for (const Line& prefix : some) {
      check(prefix.is_whole && first_not_utf8(prefix.text) == prefix.text.npos && !has_nul(prefix.text), program,
            "--prefix-file ", path, ", line ", before + static_cast<i64>(known) + 1,
            " is too long or not UTF-8, or has a NUL character");
      lines[known++].prefix = prefix.text;
    }
  }
  return true;
}

// Prints the translation of each line that `reader` reads, until Ctrl-C, or until nobody can read them. Returns the
// seconds that this took, without waiting for input.
double translate_lines(const Translator& translator, const CommandOptions& options, const Interrupt& interrupt,
                       LineReader& reader, const std::unique_ptr<LineReader>& prefixes, Totals& totals,
                       AttentionOfLines& attention) {
  LiveLine live(std::cerr, isatty(STDOUT_FILENO) == 1 ? Terminal{} : terminal_of(STDERR_FILENO));
  double seconds = 0;
  const auto stopped = [&] { return interrupt.requested(); };
  const auto can_go_on = [&] { return std::cout.good() && !stopped(); };
  for (size_t window = first_window; can_go_on(); window = std::min(2 * window, largest_window)) {
    std::vector<Line> lines = reader.read(window, stopped);
    if (lines.empty()) {
      check(!prefixes || stopped() || prefixes->read(1, stopped).empty(), options.command.program, "--prefix-file ",
            options.prefixes, " has more lines than the text, which has ", totals.lines());
      break;
    }
    if (prefixes && !add_prefixes(lines, *prefixes, options, totals.lines(), stopped)) break;
    const Stopwatch watch;
    const i64 before = totals.lines();
    auto line = lines.begin();
    translations(
        translator, lines, options.command.decode, [&] { return !can_go_on(); },
        [&](std::span<const Translation> ready, i64 done) {
          for (const Translation& translation : ready) {
            totals.add(translation);
            if (options.command.decode.n_best > 1)
              print_n_best(translation, totals.lines());
            else
              print(translation, options.scores);
            attention.add(*line++, translation);
          }
          std::cout.flush();
          live.show(std::to_string(before + done) + " lines, " +
                    numbers("%.1f lines/s", static_cast<double>(before + done) / (seconds + watch.seconds())));
        });
    seconds += watch.seconds();
  }
  return seconds;
}

int decode(const CommandOptions& options) {
  check_attention(options);
  set_threads(static_cast<int>(options.threads));
  const bool from_stdin = options.file.empty();
  const Descriptor file(from_stdin ? -1 : opened(options.file));
  const Translator translator = load_ensemble(options.load, options.command.program);
  if (options.command.decode.beam > translator.vocabulary.size())
    usage_error("--beam",
                "must be at most " + std::to_string(translator.vocabulary.size()) + ", the tokens of the model");
  if (options.command.decode.n_best > options.command.decode.beam)
    usage_error("--n-best", "must be at most --beam, " + std::to_string(options.command.decode.beam));
  const Descriptor prefix_file(options.prefixes.empty() ? -1 : opened(options.prefixes));
  const auto prefixes =
      options.prefixes.empty() ? nullptr : std::make_unique<LineReader>(prefix_file.number(), options.prefixes);
  print_start(std::cerr, {.parameters = translator.parameter_count()});
  const bool asked_by_a_person = from_stdin && isatty(STDIN_FILENO) == 1;
  if (asked_by_a_person) std::cerr << "Type a sentence and Enter; Ctrl-D ends.\n";
  const Interrupt interrupt;
  LineReader reader(from_stdin ? STDIN_FILENO : file.number(), from_stdin ? "standard input" : options.file);
  Totals totals(options.command);
  AttentionOfLines attention(translator, options);
  const double seconds = translate_lines(translator, options, interrupt, reader, prefixes, totals, attention);
  if (!std::cout.good()) {
    check(!output_is_closed(), options.command.program, "standard output was closed before all lines were written");
    return done;  // the program says that it could not write
  }
  totals.warn(translator, prefixes != nullptr);
  totals.print_speed(seconds);
  attention.end();
  return interrupt.requested() ? interrupted : done;
}

}  // namespace

void add_decode_options(CLI::App& command, DecodeOptions& options, const std::string& answer) {
  add_whole_number(command, "--beam", options.beam, 1, 1000, "Hypotheses that beam search keeps; 1 is greedy decoding");
  add_number(command, "--length-penalty", options.length_penalty, 0, 100,
             "Hypotheses are compared by their log-probability / length^PENALTY");
  show_default(add_whole_number(command, "--max-length", options.max_length, 1, DecodeOptions::most,
                                "Longest " + answer + " in tokens; always at most 50 more than the source has"),
               "");
  add_whole_number(command, "--batch-tokens", options.batch_tokens, 1, 10000000,
                   "Source tokens of a batch, padding included; fewer with a beam of more than 5");
  add_constraints(command, options.constraints);
}

void add_decode_command(CLI::App& parent, int& exit_code, const DecodeCommand& words) {
  auto options = std::make_shared<CommandOptions>();
  options->command = words;
  CLI::App& command = add_command(parent, words.name, words.description, words.footer);
  require(take_folders(
      add_repeated_file(command, "--load", options->load,
                        "The model, or the folder of --save FOLDER/; given several times, models of one vocabulary "
                        "write together, by the mean of their probabilities")));
  add_file(command, "FILE", options->file, "The " + words.lines + ", UTF-8; without it standard input");
  DecodeOptions& decoding = options->command.decode;
  add_decode_options(command, decoding, words.answer);
  CLI::Option* scores = add_flag(command, "--scores", options->scores,
                                 "Before each " + words.answer + " its log-probability (natural logarithm) and a tab");
  exclude(add_whole_number(command, "--n-best", decoding.n_best, 1, 1000,
                           "Write the best N " + words.answers +
                               " of each line, the best first: the number of the line, the score by which they are "
                               "compared, and the " +
                               words.answer + ", with tabs between them; none for a line that cannot be " + words.done),
          {scores});
  add_file(command, "--prefix-file", options->prefixes,
           "Begin each " + words.answer + " as the same line of this file, which may be empty, and go on from there");
  add_output_file(
      command, "--attention", options->attention,
      "Write a page for a browser to this file: the attention weights of every layer and head, for the first "
      "lines, at most " +
          std::to_string(AttentionPage::most_pairs) + "; with several models, the weights of the first");
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return decode(*options); });
}

}  // namespace translate

void add_translate_decode(CLI::App& parent, int& exit_code) {
  translate::add_decode_command(
      parent, exit_code,
      {.name = "decode",
       .description = "Translate lines with a model from `translate train --save`, or with several",
       .footer =
           "Each line is a sentence, and gets one line in the same order. A line that cannot be translated gets an "
           "empty line.\n"
           "Examples:\n  orrery translate decode --load en-de.safetensors test.en > translated.de\n"
           "  echo a dog runs . | orrery translate decode --load en-de.safetensors --beam 1\n"
           "  orrery translate decode --load one.safetensors --load two.safetensors test.en"});
}

}  // namespace orrery
