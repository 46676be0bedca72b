// Chapter 0. The book's lists: the glossary, each word with its Chinese one, and the Chinese one of the same words; the
// README links every chapter, in both languages, and every chapter's program has its question and its answer.
#include <doctest/doctest.h>
#include <algorithm>
#include <cctype>
#include <set>

#include "tests/style_source.h"
#include "tests/text.h"

using namespace orrery::style;

namespace {

struct Entry {
  std::string word, chinese, place;
};

// Rows "| word | 中文 | what it is | 2 |"; instead of a chapter, a word may have a link: "[lm](../tasks/lm/README.md)".
std::vector<Entry> entries_of(const std::string& text) {
  static const std::regex row("^\\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| ([0-9]+|\\[.*\\]\\(.*\\)) \\|$");
  std::vector<Entry> entries;
  for (const std::string& line : split_lines(text))
    if (std::smatch match; std::regex_match(line, match, row)) entries.push_back({match[1], match[2], match[4]});
  return entries;
}

std::string lower_case(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

}  // namespace

TEST_CASE("the glossary explains its words in two languages, in the same places") {
  const std::vector<Entry> entries = entries_of(orrery::contents(root / "apps/book/glossary.md")),
                           translated = entries_of(orrery::contents(root / "apps/book/glossary.zh.md"));
  CHECK(entries.size() >= 60);
  REQUIRE(translated.size() == entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    CAPTURE(entries[i].word);
    CHECK(translated[i].word == entries[i].word);
    CHECK(translated[i].chinese == entries[i].chinese);
    CHECK(translated[i].place == entries[i].place);
  }
}

TEST_CASE("a chapter has the words that the glossary explains by it, or the beginnings of longer ones") {
  static const std::regex bracket(" \\(.*"), comma("\u3001"), part("([^ ,]+)");
  for (const Entry& entry : entries_of(orrery::contents(root / "apps/book/glossary.md"))) {
    CAPTURE(entry.word);
    std::string english, chinese;
    for (const std::string& text : entry.place[0] == '[' ? Words{} : texts_of_chapter(std::stoi(entry.place))) {
      english += lower_case(orrery::contents(root / text));
      chinese += lower_case(orrery::contents(root / in_chinese(text)));
    }
    if (english.empty()) continue;
    std::erase(chinese, '\n');
    const std::string word = std::regex_replace(lower_case(entry.word), bracket, "");
    for (const std::string& one : matches_in(word, part)) CHECK(english.find(one.substr(0, 5)) != one.npos);
    bool said = chinese.find(word) != word.npos;  // a text in Chinese may keep the English name
    for (const std::string& one : matches_in(std::regex_replace(lower_case(entry.chinese), comma, " "), part))
      said |= chinese.find(one) != one.npos;
    CHECK(said);
  }
}

TEST_CASE("the files that the glossary names are there") {
  static const std::regex file("`([a-z_/]+\\.(?:h|cpp))`");
  const std::string text = orrery::contents(root / "apps/book/glossary.md");
  size_t named = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), file), end; at != end; ++at, ++named) {
    CAPTURE((*at)[1].str());
    CHECK(std::filesystem::exists(root / (*at)[1].str()));
  }
  CHECK(named >= 15);
}

TEST_CASE("the book's README links every part of every chapter") {
  const std::string folder = "apps/book/", english = orrery::contents(root / (folder + "README.md")),
                    chinese = orrery::contents(root / (folder + "README.zh.md"));
  for (int chapter = 0; chapter <= 11; ++chapter) {
    for (const std::string& text : texts_of_chapter(chapter)) {
      CAPTURE(text);
      CHECK(english.find("](" + text.substr(folder.size()) + ")") != english.npos);
      CHECK(chinese.find("](" + in_chinese(text).substr(folder.size()) + ")") != chinese.npos);
    }
  }
}

namespace {

Sources examples() {
  Sources result;
  std::copy_if(tree().begin(), tree().end(), std::back_inserter(result), [](const Source& source) {
    return source.folder().starts_with("apps/book/ch") && !source.folder().ends_with("/exercises");
  });
  return result;
}

}  // namespace

TEST_CASE("chapters 0 to 11 have their programs, with question and answer") {
  std::set<int> chapters;
  for (const Source& example : examples()) {
    chapters.insert(example.chapter);
    CAPTURE(example.path);
    CHECK(example.folder() == "apps/book/ch" + std::to_string(example.chapter));
    for (const std::string part : {"// Question: ", "// Answer: "})
      CHECK(std::any_of(example.lines.begin(), example.lines.end(),
                        [&](const std::string& line) { return line.starts_with(part); }));
  }
  for (int chapter = 0; chapter <= 11; ++chapter) CHECK(chapters.contains(chapter));
}
