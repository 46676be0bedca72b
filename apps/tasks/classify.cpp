// Chapter 9. `orrery classify`: which of some labels a text has, learned from a table with a column of each.
//
// Scores are those of a confusion matrix, which counts how often each label was taken for which:
//   accuracy   the share of texts whose label is right
//   macro F1   the mean over the labels of 2 right / (texts of this label + texts taken for it)
#include <algorithm>
#include <iostream>
#include <numeric>

#include "apps/data/corpus.h"
#include "apps/data/table.h"
#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "apps/tasks/label_task.h"
#include "core/error.h"

namespace orrery {
namespace {

// counts[i][k]: how often label i was taken for label k.
struct Confusion {
  std::vector<std::vector<i64>> counts;

  Confusion(const JudgedTexts& texts, size_t labels) : counts(labels, std::vector<i64>(labels)) {
    for (const JudgedText& text : texts)
      ++counts[static_cast<size_t>(text.right[0])][static_cast<size_t>(text.answers[0].label)];
  }
  i64 of(size_t label) const { return std::accumulate(counts[label].begin(), counts[label].end(), i64{0}); }
  i64 taken_for(size_t label) const {
    return std::accumulate(counts.begin(), counts.end(), i64{0},
                           [label](i64 sum, const std::vector<i64>& row) { return sum + row[label]; });
  }
  // 0 of a label that neither occurs nor is an answer.
  double f1(size_t label) const {
    const i64 both = of(label) + taken_for(label);
    return both > 0 ? 2 * static_cast<double>(counts[label][label]) / static_cast<double>(both) : 0;
  }
};

class Classify final : public LabelTask {
 public:
  std::string name() const override { return "classify"; }
  nn::BertHead head() const override { return nn::BertHead::sentence; }
  std::string description() const override { return "Labels of texts: learn them from a table, evaluate, label lines"; }
  std::string example() const override { return "train.tsv --text review --label stars"; }
  std::string answers() const override { return "the label of each, its probability and the line"; }
  void add_columns(CLI::App& command) override {
    add_text(command, "--text", text_, "COLUMN", "The column of texts; if not given, as in training, or text");
    add_text(command, "--label", label_, "COLUMN",
             "The column of their labels; if not given, as in training, or label");
  }
  std::vector<LabelledText> read(const std::string& path) const override;
  std::vector<Score> scores(const JudgedTexts& texts, const std::vector<std::string>& labels) const override {
    return label_scores(texts, labels);
  }
  std::string table(const JudgedTexts& texts, const std::vector<std::string>& labels) const override {
    return label_table(texts, labels);
  }

 private:
  std::string text_ = "text", label_ = "label";
};

std::vector<LabelledText> Classify::read(const std::string& path) const {
  if (text_ == label_) usage_error("--label", "names the same column as --text, " + printable(text_));
  Table table = read_table(path);
  if (const i64 left_out = table.empty_lines; left_out > 0)
    std::cerr << harmless(path) << ": " << left_out << (left_out == 1 ? " empty line is" : " empty lines are")
              << " left out\n";
  const size_t text = table.column(text_, "--text"), label = table.column(label_, "--label");
  std::vector<LabelledText> texts;
  std::vector<std::string> empty;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    std::vector<std::string>& row = table.rows[i];
    for (const size_t column : {text, label})
      if (translate::is_empty(row[column])) empty.push_back(table.place(i) + ": " + printable(table.names[column]));
    texts.push_back({{std::move(row[text])}, {std::move(row[label])}, table.place(i)});
  }
  if (!empty.empty())
    fail(name(), empty[0], " is empty",
         empty.size() > 1 ? ", the first of " + std::to_string(empty.size()) + " empty fields" : "");
  return texts;
}

}  // namespace

// Labels that neither occur nor are an answer do not count.
std::vector<Score> label_scores(const JudgedTexts& texts, const std::vector<std::string>& labels) {
  const Confusion confusion(texts, labels.size());
  double right = 0, f1 = 0, occur = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    right += static_cast<double>(confusion.counts[i][i]);
    f1 += confusion.f1(i);
    occur += confusion.of(i) + confusion.taken_for(i) > 0;
  }
  return {{"accuracy", right / static_cast<double>(texts.size()), Better::higher},
          {"macro F1", f1 / occur, Better::higher}};
}

// The whole matrix of a few labels; of many, what is confused most often.
std::string label_table(const JudgedTexts& texts, const std::vector<std::string>& labels) {
  constexpr size_t most_columns = 8, widest = 12, most_pairs = 10;
  const Confusion confusion(texts, labels.size());
  std::string table;
  if (labels.size() <= most_columns) {
    table = fitted("is | taken for", widest + 2);
    for (const std::string& label : labels) table += "  " + fitted_middle(label, widest);
    table += "  F1";
    for (size_t i = 0; i < labels.size(); ++i) {
      table += "\n" + fitted_middle(labels[i], widest + 2);
      for (const i64 count : confusion.counts[i]) table += "  " + fitted(std::to_string(count), widest);
      table += numbers("  %.4f", confusion.f1(i));
    }
    return table;
  }
  std::vector<std::pair<i64, std::string>> pairs;
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t k = 0; k < labels.size(); ++k)
      if (i != k && confusion.counts[i][k] > 0)
        pairs.emplace_back(-confusion.counts[i][k], labels[i] + " taken for " + labels[k]);
  std::sort(pairs.begin(), pairs.end());
  for (size_t i = 0; i < std::min(pairs.size(), most_pairs); ++i)
    table += (i > 0 ? "\n" : "") + std::to_string(-pairs[i].first) + " times " + pairs[i].second;
  return table;
}

void add_classify(CLI::App& program, int& exit_code) {
  add_label_task(program, exit_code, std::make_shared<Classify>());
}

}  // namespace orrery
