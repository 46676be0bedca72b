// Chapter 9. `orrery answer`: the answer to a question about a story, one of those that a file has.
//
// Weston et al. 2015, "Towards AI-Complete Question Answering: A Set of Prerequisite Toy Tasks" (bAbI). Lines are
// numbered, from 1 in each story; behind a question stand its answer and the lines that it follows from, after tabs:
//   1 Mary moved to the bathroom.
//   2 John went to the hallway.
//   3 Where is Mary?<TAB>bathroom<TAB>1
// A list such as "football,milk" is one answer. The model is an encoder that reads
//   [CLS] question [SEP] last sentence ... first sentence [SEP]
// in small letters, each word or mark a token, and chooses an answer at [CLS]. The last sentence comes first, because
// what was said last holds, and because of a story that is too long the beginning is cut off. Its segment says how long
// ago a sentence was: 1 for the last one before the question, 2 for the one before it, and so on. The layers read the
// question and each sentence as one vector (nn/models/bert.h), as Dehghani et al. 2018 do, "Universal Transformers",
// section 3.1; with --no-sentence-sums they read every word.
#include <algorithm>
#include <charconv>
#include <iterator>

#include "apps/data/table.h"
#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "apps/data/words.h"
#include "apps/program/options.h"
#include "apps/tasks/label_task.h"
#include "core/error.h"

namespace orrery {
namespace {

// A line, with the number that it begins with; 0: it begins with none.
struct StoryLine {
  i64 number = 0;
  std::string_view text;  // without spaces around it
};

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(ascii_space), text.size());
  return text.substr(begin, text.find_last_not_of(ascii_space) + 1 - begin);
}

StoryLine numbered(std::string_view line) {
  StoryLine result{.text = trimmed(line)};
  const char* const begin = result.text.data();
  const auto [end, error] = std::from_chars(begin, begin + result.text.size(), result.number);
  const size_t digits = static_cast<size_t>(end - begin);
  if (error != std::errc() || (digits < result.text.size() && ascii_space.find(*end) == ascii_space.npos))
    result.number = 0;
  else
    result.text = trimmed(result.text.substr(digits));
  return result;
}

// What a model reads of a sentence.
std::string words_in(std::string_view sentence) { return lowercase(translate::words_13a(sentence)); }

// A question and its story, the last sentence first.
std::vector<std::string> question_parts(std::string_view question, const std::vector<std::string>& story) {
  std::vector<std::string> parts{words_in(question)};
  parts.insert(parts.end(), story.rbegin(), story.rend());
  return parts;
}

class AnswerTask final : public LabelTask {
 public:
  std::string name() const override { return "answer"; }
  nn::BertHead head() const override { return nn::BertHead::sentence; }
  std::string description() const override {
    return "Questions about stories: learn their answers from bAbI's files, evaluate, answer";
  }
  std::string example() const override { return "qa1_train.txt"; }
  std::string answers() const override {
    return "for each that ends in ? the answer, its probability and the question. Other lines are the story; an empty "
           "one, or one with the number 1, begins another story";
  }
  bool has_stories() const override { return true; }
  void add_columns(CLI::App&) override {}
  std::vector<LabelledText> read(const std::string& path) const override;
  std::optional<LabelledText> text_of(const std::string& line, std::vector<std::string>& story) const override;
  std::vector<Score> scores(const JudgedTexts& texts, const std::vector<std::string>& labels) const override {
    return label_scores(texts, labels);
  }
  std::string table(const JudgedTexts& texts, const std::vector<std::string>& labels) const override {
    return label_table(texts, labels);
  }
};

std::vector<LabelledText> AnswerTask::read(const std::string& path) const {
  const std::string file = read_text(path);
  check_utf8(file, path, name());
  std::vector<LabelledText> questions;
  std::vector<std::string> story;
  i64 line_number = 0, stories = 0, before = 0;
  for (const std::string_view line : lines_of(file)) {
    const std::string place = path + ", line " + std::to_string(++line_number);
    const StoryLine found = numbered(line);
    check(found.number == 1 || (found.number > 1 && found.number == before + 1), name(), place,
          found.number > 0 ? " has the number " + std::to_string(found.number) : " begins with no number",
          "; lines are ", "numbered from 1 in each story, and the next one here is 1 or ", before + 1);
    check(!found.text.empty(), name(), place, " is empty");
    before = found.number;
    if (found.number == 1) {
      ++stories;
      story.clear();
    }
    const size_t tab = found.text.find('\t');
    if (tab == found.text.npos) {
      check(!found.text.ends_with('?'), name(), place, " is a question without an answer; it stands behind a tab");
      story.push_back(words_in(found.text));
      continue;
    }
    const std::string_view rest = found.text.substr(tab + 1), answer = trimmed(rest.substr(0, rest.find('\t')));
    check(tab > 0 && !answer.empty(), name(), place, " has an empty ", tab > 0 ? "answer" : "question");
    questions.push_back({.words = question_parts(found.text.substr(0, tab), story),
                         .labels = {std::string(answer)},
                         .place = place,
                         .story = stories});
  }
  check(!questions.empty(), name(), path, " has no question: a line with a tab and an answer behind it");
  return questions;
}

std::optional<LabelledText> AnswerTask::text_of(const std::string& line, std::vector<std::string>& story) const {
  const StoryLine found = numbered(line);
  if (found.number == 1 || found.text.empty()) story.clear();
  if (found.text.empty()) return std::nullopt;
  const std::string_view text = trimmed(found.text.substr(0, found.text.find('\t')));
  if (text.ends_with('?')) return LabelledText{.words = question_parts(text, story)};
  story.push_back(words_in(text));
  return std::nullopt;
}

}  // namespace

void add_answer(CLI::App& program, int& exit_code) {
  add_label_task(program, exit_code, std::make_shared<AnswerTask>());
}

}  // namespace orrery
