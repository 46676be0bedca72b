// Chapter 9. The commands of a task that learns labels: train, eval and run.
#include "apps/tasks/label_task.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "apps/data/text_file.h"
#include "apps/program/command.h"
#include "apps/program/interrupt.h"
#include "apps/program/machine.h"
#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "apps/tasks/bert_training.h"
#include "core/machine/parallel.h"
#include "nn/files/files.h"

namespace orrery {

namespace {

// What eval and run are given.
struct UseOptions {
  std::string load, file;
  i64 most_tokens = 0, wrong = 0, unsure = 0, threads = 1;
  std::vector<CLI::Option*> kept;  // of which a model says the values
};

// A saved model, as eval and run use it.
struct Labeller {
  TextReader reader;
  nn::Bert model;
};

Labeller labeller_of(const LabelTask& task, UseOptions& options) {
  const std::string& path = options.load;
  const SavedForm form = saved_form(task.name(), task.head(), path);
  const nn::BertConfig& config = form.config;
  take_kept(options.kept, form.metadata, path);
  constexpr i64 usual = 256;  // for models of others
  if (options.most_tokens == 0) options.most_tokens = std::min(usual, config.max_positions);
  if (options.most_tokens > config.max_positions)
    usage_error("--max-tokens", "must be at most the model's " + std::to_string(config.max_positions));
  return {{form.tokens, config, options.most_tokens}, nn::load<nn::Bert>(path, config)};
}

// Numbers the labels that the model never saw after its own: they are never its answer. Error: they are very many.
void add_unseen(const LabelTask& task, const std::string& path, const std::vector<LabelledText>& texts,
                std::vector<std::string>& labels) {
  const size_t seen = labels.size();
  i64 count = 0;
  for (const LabelledText& text : texts)
    for (const std::string& label : text.labels) {
      const auto found = std::find(labels.begin(), labels.end(), label);
      count += found - labels.begin() >= static_cast<std::ptrdiff_t>(seen);
      if (found == labels.end()) labels.push_back(label);
      check_labels(task.name(), path, labels.size());
    }
  const std::vector<std::string> unseen(labels.begin() + static_cast<std::ptrdiff_t>(seen), labels.end());
  if (count > 0)
    std::cerr << "warning: the model never saw the label of " << count << (count == 1 ? " answer" : " answers")
              << ", which counts as wrong: " << harmless(some_of(unseen, 5)) << '\n';
}

// The wrong answers that the model was surest of. Where it is sure and wrong, so may be the file.
void print_mistakes(const JudgedTexts& said, const std::vector<LabelledText>& texts, const nn::BertConfig& config,
                    const UseOptions& options) {
  const bool of_words = config.head == nn::BertHead::token;
  std::vector<std::pair<double, std::string>> mistakes;
  for (size_t i = 0; i < texts.size(); ++i)
    for (size_t word = 0; word < said[i].right.size(); ++word) {
      const auto& [label, probability] = said[i].answers[word];
      if (label < 0 || label == said[i].right[word]) continue;
      std::string place = texts[i].place.substr(options.file.size() + 2), text = joined(texts[i].words, " ");
      std::replace_if(
          text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
      if (of_words) place += std::to_string(texts[i].lines[word]) + '\t' + texts[i].words[word];
      mistakes.emplace_back(-probability, joined({name_of(label, config.labels), numbers("%.4f", probability),
                                                  name_of(said[i].right[word], config.labels), place, text},
                                                 "\t"));
    }
  std::stable_sort(mistakes.begin(), mistakes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::cout << "answer\tprobability\tright\tplace\t" << (of_words ? "word\tsentence\n" : "text\n");
  for (i64 i = 0; i < std::min(options.wrong, std::ssize(mistakes)); ++i)
    std::cout << for_reader(mistakes[static_cast<size_t>(i)].second, STDOUT_FILENO) << '\n';
}

int judge_file(const LabelTask& task, UseOptions& options) {
  set_threads(static_cast<int>(options.threads));
  Labeller saved = labeller_of(task, options);
  const std::vector<LabelledText> labelled = task.read(options.file);
  add_unseen(task, options.file, labelled, saved.reader.config.labels);
  const EncodedTexts texts = saved.reader(labelled);
  print_start(std::cerr, {.parameters = saved.model.config.parameter_count()});
  const JudgedTexts said = [&] {
    const Phase phase("judging " + options.file);
    return judged(saved.model, texts);
  }();
  const auto cut = std::count_if(texts.begin(), texts.end(), [](const EncodedText& text) { return text.is_cut; });
  std::cerr << texts.size() << " texts of " << harmless(options.file) << ", " << cut << " of them cut off at "
            << options.most_tokens << " tokens\n";
  for (const Score& score : task.scores(said, saved.reader.config.labels))
    std::cout << score.name << numbers(" %.4f  ", score.value);
  std::cout << '\n' << for_reader(task.table(said, saved.reader.config.labels), STDOUT_FILENO) << std::endl;
  warn_of_one_answer(task, said, saved.reader.config.labels);
  if (options.wrong > 0) print_mistakes(said, labelled, saved.reader.config, options);
  return done;
}

// Writes the answers for each line, or at the end those that the model was least sure of.
class AnswerWriter {
 public:
  AnswerWriter(const nn::BertConfig& config, i64 unsure) : config_(config), unsure_(unsure) {}

  void write(const LabelledText& text, const std::string& line, const JudgedText& said) {
    const bool of_words = config_.head == nn::BertHead::token;
    for (size_t i = 0; i < said.answers.size(); ++i) {
      const auto& [label, probability] = said.answers[i];
      const std::string name = name_of(label, config_.labels), share = numbers("%.4f", probability),
                        shown = of_words ? joined({text.words[i], name, share}, "\t") : joined({name, share}, "\t");
      if (unsure_ == 0)
        std::cout << for_reader(of_words ? shown : shown + '\t' + line, STDOUT_FILENO) << '\n';
      else if (label >= 0)
        kept_.emplace_back(probability, joined({shown, text.place, line}, "\t"));
    }
    if (unsure_ == 0 && (of_words || text.words.empty())) std::cout << '\n';
    std::cout.flush();
  }
  void end() {
    std::stable_sort(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (i64 i = 0; i < std::min(unsure_, std::ssize(kept_)); ++i)
      std::cout << for_reader(kept_[static_cast<size_t>(i)].second, STDOUT_FILENO) << '\n';
    std::cout.flush();
  }

 private:
  const nn::BertConfig& config_;
  i64 unsure_;
  std::vector<std::pair<double, std::string>> kept_;
};

int label_lines(const LabelTask& task, UseOptions& options) {
  constexpr size_t window = 64;
  set_threads(static_cast<int>(options.threads));
  const Labeller saved = labeller_of(task, options);
  print_start(std::cerr, {.parameters = saved.model.config.parameter_count()});
  if (isatty(STDIN_FILENO) == 1) std::cerr << "Type a sentence and Enter; Ctrl-D ends.\n";
  const Interrupt interrupt;
  LineReader reader(STDIN_FILENO, "standard input");
  AnswerWriter writer(saved.model.config, options.unsure);
  i64 lines_read = 0, left_out = 0, first_left_out = 0, cut = 0;
  std::vector<std::string> earlier;
  const auto stopped = [&] { return interrupt.requested(); };
  while (std::cout.good() && !stopped()) {
    const std::vector<Line> lines = reader.read(window, stopped);
    if (lines.empty()) break;
    std::vector<LabelledText> texts;
    std::vector<std::string> shown;
    for (const Line& line : lines) {
      ++lines_read;
      const bool can_be_read = line.is_whole && first_not_utf8(line.text) == line.text.npos;
      const std::optional<LabelledText> text = can_be_read ? task.text_of(line.text, earlier) : LabelledText();
      if (!text) continue;
      if (text->words.empty() && left_out++ == 0) first_left_out = lines_read;
      texts.push_back(*text);
      texts.back().place = "line " + std::to_string(lines_read);
      shown.push_back(line.text);
    }
    const EncodedTexts encoded = saved.reader(texts);
    const JudgedTexts said = judged(saved.model, encoded);
    for (size_t i = 0; i < texts.size(); ++i) {
      writer.write(texts[i], shown[i], said[i]);
      cut += encoded[i].is_cut;
    }
  }
  writer.end();
  if (left_out > 0)
    std::cerr << "warning: " << left_out << (left_out == 1 ? " line is" : " lines are")
              << " empty, too long or not UTF-8 (line " << first_left_out << (left_out == 1 ? ")" : " is the first)")
              << (options.unsure > 0 ? "; they have no answers\n" : "; answers are empty lines there\n");
  if (cut > 0)
    std::cerr << "warning: " << cut << (cut == 1 ? " line is" : " lines are") << " cut off at " << options.most_tokens
              << " tokens\n";
  return interrupt.requested() ? interrupted : done;
}

using Use = int(const LabelTask& task, UseOptions& options);

// Adds a command that uses a model, and returns it with its options.
std::pair<CLI::App&, std::shared_ptr<UseOptions>> add_use(CLI::App& parent, int& exit_code,
                                                          const std::shared_ptr<LabelTask>& task,
                                                          const std::string& name, const std::string& description,
                                                          const std::string& example, Use* use) {
  auto options = std::make_shared<UseOptions>();
  CLI::App& command = add_command(parent, name, description, "Example:\n" + example);
  require(take_folders(add_file(command, "--load", options->load,
                                "The model, or the folder of --save FOLDER/; also a folder of Hugging Face's with "
                                "model.safetensors, config.json and vocab.txt")));
  options->kept = {add_whole_number(command, "--max-tokens", options->most_tokens, 3, 65536,
                                    "Tokens of the longest text, [CLS] and [SEP] included; if not given, as in "
                                    "training")};
  show_default(options->kept[0], "");
  add_threads(command, options->threads);
  when_run(command, exit_code, [task, options, use] { return use(*task, *options); });
  return {command, options};
}

}  // namespace

void check_labels(const std::string& task, const std::string& path, size_t count) {
  constexpr size_t most = 1000;
  check(count <= most, task, path, " has more than ", most, " different labels: is it the right column?");
}

std::optional<LabelledText> LabelTask::text_of(const std::string& line, std::vector<std::string>&) const {
  if (translate::is_empty(line)) return LabelledText();
  if (head() == nn::BertHead::sentence) return LabelledText{.words = {line}};
  LabelledText text;
  std::istringstream words(line);
  for (std::string word; words >> word;) text.words.push_back(word);
  return text;
}

void warn_of_one_answer(const LabelTask& task, const JudgedTexts& texts, const std::vector<std::string>& labels) {
  std::set<i32> said;
  std::map<i32, i64> right;
  for (const JudgedText& text : texts) {
    for (const Answer& answer : text.answers)
      if (answer.label >= 0) said.insert(answer.label);
    for (const i32 label : text.right) ++right[label];
  }
  if (said.size() != 1 || right.size() < 2) return;
  const i64 count = right[*said.begin()];
  const bool is_commonest =
      std::all_of(right.begin(), right.end(), [&](const auto& all) { return all.second <= count; });
  std::cerr << "warning: every " << (task.head() == nn::BertHead::token ? "tag" : "answer") << " is "
            << printable(name_of(*said.begin(), labels)) << (is_commonest ? ", the commonest label" : "")
            << "; a longer training or a higher --rate may help\n";
}

std::string name_of(i32 label, const std::vector<std::string>& labels) {
  return label < 0 ? "O" : labels.at(static_cast<size_t>(label));
}

void add_label_task(CLI::App& program, int& exit_code, const std::shared_ptr<LabelTask>& task) {
  const std::string file = task->example().substr(0, task->example().find(' ')),
                    extension = file.substr(file.find('.'));
  const std::string orrery = "  orrery " + task->name(), train = orrery + " train " + task->example(),
                    save = " --save m/", load = " --load m/", test = orrery + " eval test" + extension + load,
                    use = orrery + " run" + load + " < lines.txt";
  CLI::App& command =
      add_command(program, task->name(), task->description(),
                  "Examples:\n" + joined({train + save, test, use}, "\n") + "\nEach has its own --help.");
  add_training(command, exit_code, label_training(task), "train",
               "Learn the labels of a file; with --init, the usual recipe for a BERT that is trained already",
               "Examples:\n" + train + save + "\n" + train + "\n    --init minilm/ --save tuned/");
  const auto [eval, of_eval] =
      add_use(command, exit_code, task, "eval", "Compare the labels of a file with those of a model", test, judge_file);
  require(add_file(eval, "FILE", of_eval->file, "Texts with labels, as those of `train`"));
  const auto columns = added_by(eval, [&eval = eval, &task] { task->add_columns(eval); });
  of_eval->kept.insert(of_eval->kept.end(), columns.begin(), columns.end());
  add_whole_number(eval, "--wrong", of_eval->wrong, 1, 1000000,
                   "Also write so many wrong answers, those that the model was surest of: the answer, its probability, "
                   "the right label, the place in the file and the text");
  show_default(options_of(eval).back(), "");
  const auto [run, of_run] = add_use(command, exit_code, task, "run",
                                     "Read lines from standard input, and write " + task->answers(), use, label_lines);
  add_whole_number(
      run, "--unsure", of_run->unsure, 1, 1000000,
      "When all lines are read, write only so many, those of which the model was least sure, each with the "
      "number of its line");
  show_default(options_of(run).back(), "");
  add_bert_export(command, exit_code, task->name(), task->head(),
                  task->has_stories() ? " of train --no-sentence-sums" : "");
  needs_sub_command(command);
}

}  // namespace orrery
