// Chapter 10. `orrery pretrain`: a BERT that learns from texts without labels, for `classify` and `tag` to start from.
//
// Devlin et al. 2018, "BERT", section 3.1: "The training data generator chooses 15% of the token positions at random
// for prediction. If the i-th token is chosen, we replace the i-th token with (1) the [MASK] token 80% of the time (2)
// a random token 10% of the time (3) the unchanged i-th token 10% of the time." "When choosing the sentences A and B
// for each pre-training example, 50% of the time B is the actual next sentence that follows A (labeled as IsNext), and
// 50% of the time it is a random sentence from the corpus (labeled as NotNext)." Appendix A.2: "The training loss is
// the sum of the mean masked LM likelihood and the mean next sentence prediction likelihood."
//   [CLS] A [SEP] B [SEP]     segments 0 ... 0 1 ... 1
// As there, sentences are what stands side by side in a text: it is cut into parts of at most --max-tokens, and each
// part between two words into A and B, in another place each time. What a micro-batch hides follows from the seed and
// its number alone. A step of several micro-batches weighs each by its hidden words. Appendix A.2: "we pre-train the
// model with sequence length of 128 for 90% of the steps. Then, we train the rest 10% of the steps of sequence of 512
// to learn the positional embeddings." So it is here, from 32 to 128: in short texts a word's neighbours are a larger
// share of what attention reads before it has learned where to look.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iostream>
#include <numeric>

#include "apps/data/corpus.h"
#include "apps/data/table.h"
#include "apps/data/text_file.h"
#include "apps/program/command.h"
#include "apps/program/terminal.h"
#include "apps/tasks/bert_training.h"
#include "apps/training/recipe.h"
#include "autograd/ops/arithmetic.h"
#include "autograd/ops/softmax.h"
#include "core/machine/parallel.h"
#include "core/tensor_ops.h"
#include "nn/files/files.h"

namespace orrery {
namespace {

// Texts of a file: the rows of a column; or what stands between empty lines, or each line if there is none.
std::vector<LabelledText> read_documents(const std::string& path, const std::string& column) {
  std::vector<LabelledText> texts;
  if (!column.empty()) {
    Table table = read_table(path);
    const size_t place = table.column(column, "--text");
    for (std::vector<std::string>& row : table.rows) texts.push_back({.words = {std::move(row[place])}});
  } else {
    const std::string text = read_text(path);
    check_utf8(text, path, "pretrain");
    std::vector<std::string_view> lines = lines_of(text);
    while (!lines.empty() && translate::is_empty(lines.back())) lines.pop_back();
    const bool has_empty = std::any_of(lines.begin(), lines.end(), translate::is_empty);
    bool begins = true;
    for (const std::string_view line : lines) {
      if (!translate::is_empty(line)) {
        if (begins) texts.emplace_back();
        texts.back().words.emplace_back(line);
      }
      begins = !has_empty || translate::is_empty(line);
    }
    check(!texts.empty(), "pretrain", path, " has nothing but empty lines");
  }
  return texts;
}

// Of texts in which the same words are hidden each time.
std::vector<Score> judged_words(const nn::Bert& model, const TextTokens& tokens, const EncodedTexts& texts, i64 seed,
                                Ranks& ranks) {
  const NoGradient nothing_recorded;
  Rng numbers = random_numbers(seed, Purpose::held_out);
  const translate::BatchesByLength batches = batches_of(texts, 32, numbers);
  const auto draw = [&](i64 i) { return pretraining_batch(tokens, texts, batches.sorted_batch(i), numbers); };
  const auto judge = [&](const PretrainingBatch& batch) {
    nn::Pass pass = nn::Pass::inference();
    const Variable hidden = model.hidden(batch.ids, batch.segments, pass);
    const auto [places, answers] = nn::Bert::labelled(hidden, batch.words, CrossEntropyOptions{}.ignore_index);
    const Variable logits = model.word_logits(places);
    const auto same = [](const Tensor& a, const Tensor& b) {
      return std::inner_product(a.data<i32>(), a.data<i32>() + a.count(), b.data<i32>(), 0.0, std::plus<>(),
                                std::equal_to<>());
    };
    return Ranks::Numbers{cross_entropy(logits, answers, {.reduction = Reduction::sum}).item(),
                          static_cast<double>(batch.hidden), same(argmax(logits.value()), answers),
                          same(argmax(model.logits(hidden, pass).value()), batch.next)};
  };
  const Ranks::Numbers sums = ranks.sums(batches.in_epoch(), draw, judge);
  return {{"masked loss", sums[0] / sums[1]},
          {"masked accuracy", sums[2] / sums[1], Better::higher},
          {"next accuracy", sums[3] / static_cast<double>(texts.size()), Better::higher}};
}

class Pretraining final : public BertTraining {
 public:
  std::string program() const override { return "pretrain"; }
  void announce() override {
    std::cerr << learned_.size() << " parts of texts to learn, " << held_.size()
              << (valid_.empty() ? " held out of them, drawn by the seed, to validate with\n" : " to validate with\n");
    if (!short_.empty())
      std::cerr << "in the first " << short_steps() << " steps, " << short_.size() << " of at most " << first_tokens_
                << " tokens\n";
  }
  Task& build() override {
    short_.clear();
    if (run.init.empty() && first_tokens_ < most_tokens_) {
      i64 few = 0;
      for (const EncodedText& part : learned_) add_parts(part, first_tokens_ - 3, short_, few);
      const i64 rows = batch_ * most_tokens_ / first_tokens_;
      if (!short_.empty())
        short_batches_.emplace(batches_of(short_, rows, random_numbers(recipe_.seed, Purpose::training)));
    }
    return BertTraining::build();
  }
  std::vector<Items> draw(i64 step, i64 micro_batches) override {
    // Each micro-batch has 2^stretch numbers of its own, more than it draws: fewer than four for each of its tokens.
    const int stretch = std::max(20, static_cast<int>(std::bit_width(static_cast<u64>(4 * batch_ * most_tokens_))));
    const bool is_short = !short_.empty() && step <= short_steps();
    const EncodedTexts& texts = is_short ? short_ : learned_;
    drawn_.clear();
    std::vector<Items> items;
    for (i64 i = 0; i < micro_batches; ++i) {
      const i64 number = (step - 1) * micro_batches + i;
      Rng numbers = random_numbers(recipe_.seed, Purpose::extra);
      numbers = Rng(numbers.seed(), numbers.position() + (static_cast<u64>(number) << stretch));
      drawn_.push_back(
          pretraining_batch(*tokens_, texts, (is_short ? short_batches_ : batches_)->batch(number), numbers));
      items.push_back({drawn_.back().hidden, drawn_.back().ids.size(0)});
    }
    return items;
  }
  BatchLoss loss(i64 micro_batch, nn::Pass& pass) override {
    const PretrainingBatch& batch = drawn_[static_cast<size_t>(micro_batch)];
    const Variable hidden = model_->hidden(batch.ids, batch.segments, pass);
    return {model_->word_loss(hidden, batch.words) + cross_entropy(model_->logits(hidden, pass), batch.next)};
  }
  double loss_of_guessing() const override { return std::log(2 * config_.vocab_size); }
  std::vector<Score> evaluate() override { return judged_words(*model_, *tokens_, held_, recipe_.seed, judges()); }

 private:
  std::string file_help() const override { return "Texts, UTF-8, with empty lines between them, or one on each line"; }
  void add_columns(CLI::App& command) override {
    show_default(add_text(command, "--text", column_, "COLUMN", "FILE is a table: learn the texts of this column"), "");
    add_whole_number(command, "--first-tokens", first_tokens_, 5, 65536,
                     "Without --init, the --max-tokens of the first nine tenths of the steps, in which a batch has as "
                     "many more texts");
  }
  nn::BertHead head() const override { return nn::BertHead::pretraining; }
  std::vector<LabelledText> read_file(const std::string& path) const override { return read_documents(path, column_); }
  void look_at(const std::vector<LabelledText>&) override { config_.labels.clear(); }
  EncodedTexts encoded(const std::vector<LabelledText>& texts, const std::string& path) const override;

  i64 short_steps() const { return recipe_.steps - recipe_.steps / 10; }

  std::string column_;
  i64 first_tokens_ = 32;
  EncodedTexts short_;  // the parts to learn, cut into those of the first steps; none if all steps have the same
  std::optional<translate::BatchesByLength> short_batches_;
  std::vector<PretrainingBatch> drawn_;  // of the current step
};

EncodedTexts Pretraining::encoded(const std::vector<LabelledText>& texts, const std::string& path) const {
  if (most_tokens_ < 5) usage_error("--max-tokens", "must be at least 5: [CLS] word [SEP] word [SEP]");
  i32 piece = 0;
  while (piece < tokens_->size() && tokens_->is_special(piece)) ++piece;
  check(piece < tokens_->size(), program(), "the vocabulary has nothing but special tokens");
  i64 few = 0;
  EncodedTexts parts = parts_of(texts, *tokens_, most_tokens_ - 3, few);
  check(!parts.empty(), program(), path, " has no text of two words");
  if (few > 0) std::cerr << few << " texts, or ends of texts, of fewer than two words are left out\n";
  return parts;
}

struct Pretrained {
  TextTokens tokens;
  nn::Bert model;
};

Pretrained pretrained(const std::string& path) {
  const SavedForm form = saved_form("pretrain", nn::BertHead::pretraining, path);
  return {form.tokens, nn::load<nn::Bert>(path, form.config)};
}

// A line with the likeliest words in place of its masks, then for each mask the five likeliest and their probabilities.
std::string filled(const Pretrained& bert, const std::string& line) {
  const std::string mark = "[MASK]";
  std::vector<i32> ids{bert.tokens.cls()};
  for (size_t begin = 0, end = 0; end != line.npos; begin = end + mark.size()) {
    end = line.find(mark, begin);
    const std::vector<i32> words = bert.tokens.ids(line.substr(begin, end - begin));
    ids.insert(ids.end(), words.begin(), words.end());
    ids.push_back(end == line.npos ? bert.tokens.sep() : bert.tokens.mask());
  }
  nn::Pass pass = nn::Pass::inference();
  const Variable hidden = bert.model.hidden(Tensor::of<i32>({1, std::ssize(ids)}, ids), {}, pass);
  Tensor p = softmax(bert.model.word_logits(hidden)).value();
  std::string guesses;
  float* of_word = p.write<float>();
  for (size_t i = 0; i < ids.size(); ++i, of_word += p.size(2))
    for (int guess = 0; (guess > 0 || ids[i] == bert.tokens.mask()) && guess < 5; ++guess) {
      float* const word = std::max_element(of_word, of_word + bert.tokens.size());
      const i32 id = static_cast<i32>(word - of_word);
      if (guess == 0) ids[i] = id;
      guesses += (guess == 0 ? "\n  " : "  ") + bert.tokens.token(id) + numbers(" %.3f", std::exchange(*word, 0.0F));
    }
  return bert.tokens.text(ids) + guesses;
}

int fill_lines(const std::string& path, i64 threads) {
  const NoGradient nothing_recorded;
  set_threads(static_cast<int>(threads));
  const Pretrained bert = pretrained(path);
  if (isatty(STDIN_FILENO) == 1) std::cerr << "Type a sentence with [MASK] and Enter; Ctrl-D ends.\n";
  LineReader reader(STDIN_FILENO, "standard input");
  for (i64 number = 1; std::cout.good(); ++number) {
    const std::vector<Line> lines = reader.read(1, [] { return false; });
    if (lines.empty()) break;
    check(lines[0].is_whole, "read standard input", "line ", number, " has more than ", LineReader::longest_line,
          " bytes");
    const std::string shown = within("line " + std::to_string(number), [&] { return filled(bert, lines[0].text); });
    std::cout << for_reader(shown, STDOUT_FILENO) << std::endl;
  }
  return done;
}

}  // namespace

void add_pretrain(CLI::App& program, int& exit_code) {
  CLI::App& command = add_command(
      program, "pretrain", "A BERT of your own: learn texts without labels, fill in hidden words",
      "Examples:\n  orrery pretrain train text.txt --save bert/\n  orrery classify train few.tsv --init bert/\n"
      "  orrery pretrain train reviews.tsv --text review --save bert/\n"
      "  orrery pretrain run --load bert/ < lines.txt\nEach has its own --help.");
  add_training(command, exit_code, std::make_shared<Pretraining>(), "train",
               "Learn which words are hidden in texts, and which parts follow one another",
               "Example:\n  orrery pretrain train reviews.tsv --text review --init minilm/ --save mine/");
  const auto options = std::make_shared<std::pair<std::string, i64>>("", 1);  // the model, threads
  CLI::App& run = add_command(command, "run", "Fill in the words that lines of standard input leave open with [MASK]",
                              "Example:\n  echo 'the king is [MASK] .' | orrery pretrain run --load bert/");
  require(take_folders(add_file(run, "--load", options->first, "The model, or the folder of --save FOLDER/")));
  add_threads(run, options->second);
  when_run(run, exit_code, [options] { return fill_lines(options->first, options->second); });
  add_bert_export(command, exit_code, "pretrain", nn::BertHead::pretraining);
  needs_sub_command(command);
}

}  // namespace orrery
