// Chapter 9. `orrery tag`: a tag for each word of a sentence, such as the names in it, learned from CoNLL's columns.
//
// Tags say where the parts of a sentence are, of some type each: B-person begins one, I-person continues it, O is
// outside. They are counted as CoNLL's script conlleval counts (Tjong Kim Sang and Buchholz 2000): a part is right if
// its first word, its last word and its type are. A part begins at a B, at an I that follows O, and at an I of another
// type than the word before. So every sequence of tags has parts, whatever a model says. Tags that are not of this
// form, such as parts of speech, are judged by accuracy.
#include <algorithm>
#include <iostream>
#include <map>
#include <tuple>

#include "apps/data/table.h"
#include "apps/program/command.h"
#include "apps/program/options.h"
#include "apps/program/terminal.h"
#include "apps/tasks/label_task.h"
#include "core/error.h"

namespace orrery {

/// A part of a sentence: its first word, the word after its last one, and its type.
using TaggedSpan = std::tuple<size_t, size_t, std::string>;

/// The parts of a sentence with these tags: O, or B- or I- and a type.
std::vector<TaggedSpan> spans(const std::vector<std::string>& tags) {
  std::vector<TaggedSpan> found;
  std::string before;  // the type of the word before; "" outside
  for (size_t i = 0; i < tags.size(); ++i) {
    const std::string type = tags[i].size() > 2 && tags[i][1] == '-' ? tags[i].substr(2) : "";
    if (!type.empty() && (tags[i][0] == 'B' || type != before)) found.emplace_back(i, i, type);
    if (!type.empty()) std::get<1>(found.back()) = i + 1;
    before = type;
  }
  return found;
}

namespace {

bool is_part(const std::string& tag) { return tag.size() > 2 && (tag.starts_with("B-") || tag.starts_with("I-")); }

// How many parts of a type there are, how many the model found, and how many of these are right.
struct SpanCounts {
  double all = 0, found = 0, right = 0;

  double precision() const { return found > 0 ? right / found : 0; }
  double recall() const { return all > 0 ? right / all : 0; }
  double f1() const { return all + found > 0 ? 2 * right / (all + found) : 0; }
};

// By type; under "" of all together.
std::map<std::string, SpanCounts> span_counts(const JudgedTexts& texts, const std::vector<std::string>& labels) {
  std::map<std::string, SpanCounts> counts;
  const auto add = [&](const TaggedSpan& span, double SpanCounts::*count) {
    for (const std::string& type : {std::string(), std::get<2>(span)}) counts[type].*count += 1;
  };
  for (const JudgedText& text : texts) {
    std::vector<std::string> right, said;
    for (size_t i = 0; i < text.right.size(); ++i) {
      right.push_back(name_of(text.right[i], labels));
      said.push_back(name_of(text.answers[i].label, labels));
    }
    const std::vector<TaggedSpan> all = spans(right), found = spans(said);
    for (const TaggedSpan& span : all) add(span, &SpanCounts::all);
    for (const TaggedSpan& span : found) {
      add(span, &SpanCounts::found);
      if (std::find(all.begin(), all.end(), span) != all.end()) add(span, &SpanCounts::right);
    }
  }
  return counts;
}

class Tag final : public LabelTask {
 public:
  std::string name() const override { return "tag"; }
  nn::BertHead head() const override { return nn::BertHead::token; }
  std::string description() const override {
    return "Tags of words, such as names: learn them from CoNLL's columns, evaluate, tag lines";
  }
  std::string example() const override { return "train.conll"; }
  std::string answers() const override {
    return "a line for each of their words, which stand between spaces: the word, its tag and the probability; then an "
           "empty line";
  }
  void add_columns(CLI::App& command) override {
    add_whole_number(command, "--token-column", token_, 1, 1000, "The column of words, counted from 1");
    show_default(
        add_whole_number(command, "--tag-column", tag_, 1, 1000, "The column of their tags; if not given, the last"),
        "");
  }
  const char* tuning_rate() const override { return "2e-4"; }  // README.md, "On real data"
  std::vector<LabelledText> read(const std::string& path) const override;
  std::vector<Score> scores(const JudgedTexts& texts, const std::vector<std::string>& labels) const override;
  std::string table(const JudgedTexts& texts, const std::vector<std::string>& labels) const override;

 private:
  i64 token_ = 1, tag_ = 0;
};

// Error: some tags say where parts are, and another one is of another form.
std::vector<LabelledText> Tag::read(const std::string& path) const {
  TaggedText file = read_conll(path, {.token = token_ - 1, .tag = tag_ - 1});
  if (const i64 left_out = file.marks; left_out > 0)
    std::cerr << harmless(path) << ": " << left_out << (left_out == 1 ? " line" : " lines")
              << " of -DOCSTART-, comments, or words that are several or none left out\n";
  std::vector<LabelledText> texts;
  bool any_part = false;
  std::string other, inside;  // the first tag of another form, the first part that begins with I-
  i64 begun_inside = 0;
  for (TaggedSentence& sentence : file.sentences) {
    const std::string place = path + ", line ";
    for (size_t i = 0; i < sentence.tags.size(); ++i) {
      const std::string& tag = sentence.tags[i];
      any_part = any_part || is_part(tag);
      if (!is_part(tag) && tag != "O" && other.empty())
        other = place + std::to_string(sentence.lines[i]) + ": " + printable(tag);
    }
    for (const auto& [first, end, type] : spans(sentence.tags)) {
      if (sentence.tags[first][0] != 'I') continue;
      if (++begun_inside == 1) inside = place + std::to_string(sentence.lines[first]);
    }
    texts.push_back({std::move(sentence.tokens), std::move(sentence.tags), place, std::move(sentence.lines)});
  }
  if (begun_inside > 0)
    std::cerr << harmless(inside) << ": from here on, " << begun_inside
              << (begun_inside == 1 ? " part begins" : " parts begin") << " with I-, not B-; each counts as a part\n";
  check(!any_part || other.empty(), name(), other, " is neither O nor B- or I- and a type, as other tags are");
  return texts;
}

std::vector<Score> Tag::scores(const JudgedTexts& texts, const std::vector<std::string>& labels) const {
  double right = 0, words = 0;
  for (const JudgedText& text : texts)
    for (size_t i = 0; i < text.right.size(); ++i, ++words)
      right += name_of(text.answers[i].label, labels) == name_of(text.right[i], labels);
  const Score accuracy{"accuracy", right / words, Better::higher};
  if (std::none_of(labels.begin(), labels.end(), is_part)) return {accuracy};
  const SpanCounts all = span_counts(texts, labels)[""];
  return {{"F1", all.f1(), Better::higher},
          {"precision", all.precision(), Better::higher},
          {"recall", all.recall(), Better::higher},
          accuracy};
}

std::string Tag::table(const JudgedTexts& texts, const std::vector<std::string>& labels) const {
  if (std::none_of(labels.begin(), labels.end(), is_part)) return "";
  constexpr size_t width = 18;
  std::string table = fitted("type", width) + "    all  found  right  precision  recall      F1";
  for (const auto& [type, counts] : span_counts(texts, labels))
    table += "\n" + fitted_middle(type.empty() ? "all types" : type, width) +
             numbers("%7.0f%7.0f%7.0f%11.4f%8.4f%8.4f", counts.all, counts.found, counts.right, counts.precision(),
                     counts.recall(), counts.f1());
  return table;
}

}  // namespace

void add_tag(CLI::App& program, int& exit_code) { add_label_task(program, exit_code, std::make_shared<Tag>()); }

}  // namespace orrery
