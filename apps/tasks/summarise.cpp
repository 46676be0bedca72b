// Chapter 9. `orrery summarise`: a short text for a long one, learned from a table with a column of each.
//
// The model is that of the paper, as a translator has it: an encoder for the text, a decoder that writes the summary,
// one vocabulary for both, one matrix for all embeddings. Most words of a summary are words of its text, so the model
// can also copy them (nn/attention/copy.h); with --no-copy it cannot. Its training, beam search and files are those of
// apps/tasks/translate/. Of a text that is too long for the model the end is cut off.
// Summaries are judged by ROUGE (rouge.h), the mean over all texts.
#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/terminal.h"
#include "apps/tasks/rouge.h"
#include "apps/tasks/translate/decode.h"
#include "apps/tasks/translate/task.h"
#include "core/machine/parallel.h"

namespace orrery {
namespace {

const std::string summarise_name = "summarise";
const translate::PairColumns usual_columns{"text", "summary", "--text", "--summary"};

void add_columns(CLI::App& command, translate::PairColumns& columns) {
  add_text(command, "--text", columns.source, "COLUMN", "The column of texts; if not given, as in training, or text");
  add_text(command, "--summary", columns.target, "COLUMN",
           "The column of their summaries; if not given, as in training, or summary");
}

// `orrery summarise train`.
class SummariseProgram final : public translate::TranslateProgram {
 public:
  SummariseProgram() : TranslateProgram({.columns = usual_columns, .program = summarise_name}) {
    recipe_.model.copy = true;
  }

  void check_given() const override {
    if (files_.source.empty()) usage_error("FILE", "is required: the table of texts and their summaries");
  }
  std::vector<NamedFile> texts() const override {
    std::vector<NamedFile> all{{"the table to learn from,", files_.source}};
    if (!files_.hold_out()) all.push_back({"--valid", files_.valid_source});
    return all;
  }

 protected:
  void add_text_options(CLI::App& command) override {
    text_options = {add_file(command, "FILE", files_.source, "A table of texts and their summaries, UTF-8")};
    begin_group(command, "Text");
    text_options.push_back(
        add_file(command, "--valid", files_.valid_source,
                 "A table to validate with; if not given, a twentieth of the texts, 2,000 at most, is held out"));
    add_columns(command, *files_.columns);
    add_vocabulary_options(command, "Tokens of a text or a summary; longer ones are cut off there, and counted");
  }
};

struct SummaryOptions {
  std::vector<std::string> load;
  std::string file, output;
  translate::PairColumns columns = usual_columns;
  translate::DecodeOptions decode{.beam = 1, .cut = true};
  i64 threads = 1;
  std::vector<CLI::Option*> kept;  // of which a model says the values
};

int judge_table(SummaryOptions& options) {
  check_can_write_text(summarise_name, "--output", options.output);
  check(!is_same_file(options.output, options.file), summarise_name, "--output ", options.output, " would write over ",
        options.file);
  set_threads(static_cast<int>(options.threads));
  const translate::Translator model = translate::load_ensemble(options.load, summarise_name);
  take_kept(options.kept, read_safetensors_metadata(options.load[0]), options.load[0]);
  const translate::LinePairs pairs =
      read_pairs(options.file, options.columns, model.most_tokens(), translate::Spelling::as_it_is);
  std::vector<Line> lines;
  for (const std::string_view text : pairs.source) lines.push_back({.text = std::string(text)});
  check(!lines.empty(), summarise_name, options.file, " has no text that can be read");
  print_start(std::cerr, {.parameters = model.parameter_count()});
  const Interrupt interrupt;
  const std::vector<translate::Translation> said = [&] {
    const Phase phase("summarising " + options.file);
    return translations(model, lines, options.decode, [&] { return interrupt.requested(); });
  }();
  if (interrupt.requested()) return interrupted;
  std::array<double, 3> sums{};
  std::string written;
  for (size_t i = 0; i < said.size(); ++i) {
    const std::array<double, 3> scores = rouge(pairs.target[i], said[i].text);
    std::transform(sums.begin(), sums.end(), scores.begin(), sums.begin(), std::plus<>());
    written.append(said[i].text) += '\n';
  }
  const auto cut = std::count_if(said.begin(), said.end(), [](const auto& each) { return each.is_cut; });
  std::cerr << pairs.counts.text(0) << " of " << harmless(options.file) << ", " << cut << " texts cut off at "
            << model.most_tokens() - 1 << " tokens\n";
  if (!options.output.empty()) write_text(options.output, written);
  const double percent = 100 / static_cast<double>(said.size());
  std::cout << numbers("ROUGE-1 %.2f  ROUGE-2 %.2f  ROUGE-L %.2f", percent * sums[0], percent * sums[1],
                       percent * sums[2])
            << std::endl;
  return done;
}

void add_eval(CLI::App& parent, int& exit_code, const std::string& example) {
  auto options = std::make_shared<SummaryOptions>();
  CLI::App& command =
      add_command(parent, "eval", "Compare a model's summaries of a table with those that it has, by ROUGE",
                  "ROUGE is counted as rouge_score does with its stemmer, in percent.\nExample:\n" + example);
  require(take_folders(add_repeated_file(command, "--load", options->load,
                                         "The model, or the folder of --save FOLDER/; given several times, models of "
                                         "one vocabulary write together")));
  require(add_file(command, "FILE", options->file, "A table of texts and their summaries, as that of `train`"));
  options->kept = added_by(command, [&] { add_columns(command, options->columns); });
  add_decode_options(command, options->decode, "summary");
  add_output_file(command, "--output", options->output, "Write the model's summaries to this file, one a line");
  add_threads(command, options->threads);
  when_run(command, exit_code, [options] { return judge_table(*options); });
}

}  // namespace

void add_summarise(CLI::App& program, int& exit_code) {
  const std::string train = "  orrery summarise train mails.tsv --text body --summary subject --save m/",
                    eval = "  orrery summarise eval test.tsv --load m/",
                    run = "  orrery summarise run --load m/ < lines.txt";
  CLI::App& command =
      add_command(program, summarise_name, "Summaries: learn them from a table, evaluate, summarise lines",
                  "Examples:\n" + joined({train, eval, run}, "\n") + "\nEach has its own --help.");
  add_training(command, exit_code, std::make_shared<SummariseProgram>(), "train",
               "Learn to summarise from a table; the defaults are for tens of thousands of texts",
               "Examples:\n" + train + "\n  orrery summarise train --resume m/");
  add_eval(command, exit_code, eval);
  translate::add_decode_command(
      command, exit_code,
      {.name = "run",
       .description = "Write a summary for each line, with a model from `summarise train --save`, or with several",
       .footer = "Each line is a text. What cannot be read gets an empty line.\nExample:\n" + run,
       .program = summarise_name,
       .answer = "summary",
       .answers = "summaries",
       .done = "summarised",
       .lines = "texts to summarise, one a line",
       .decode = {.beam = 1, .cut = true}});
  needs_sub_command(command);
}

}  // namespace orrery
