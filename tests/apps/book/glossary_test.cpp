// Chapter 0. The glossary: sorted, each word with its Chinese one, a sentence and a chapter. The book's README links
// every chapter.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "tests/style_source.h"

namespace {

using namespace orrery::style;

struct Entry {
  std::string word, chinese, sentence;
};

// Rows "| word | 中文 | what it is | 2 |".
std::vector<Entry> entries_of(const std::string& text) {
  static const std::regex row("^\\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| [0-9] \\|$");
  std::vector<Entry> entries;
  for (const std::string& line : split_lines(text))
    if (std::smatch match; std::regex_match(line, match, row)) entries.push_back({match[1], match[2], match[3]});
  return entries;
}

std::string lower_case(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

// Letters of Chinese are written as three bytes, of which the first is 0xE4 to 0xE9.
bool has_chinese(const std::string& words) {
  return std::any_of(words.begin(), words.end(), [](char c) {
    const int byte = static_cast<unsigned char>(c);
    return byte >= 0xE4 && byte <= 0xE9;
  });
}

}  // namespace

TEST_CASE("the glossary has its words sorted, in two languages, each with a sentence") {
  const std::vector<Entry> entries = entries_of(read_text(root / "apps/book/glossary.md"));
  CHECK(entries.size() >= 60);
  for (size_t i = 0; i < entries.size(); ++i) {
    CAPTURE(entries[i].word);
    CHECK(has_chinese(entries[i].chinese));
    CHECK(entries[i].sentence.ends_with("."));
    if (i > 0) CHECK(lower_case(entries[i - 1].word) < lower_case(entries[i].word));
  }
  CHECK(entries_of("| a | \xE5\xBC\xA0 | B. | 2 |\n| a | b | c |\n").size() == 1);
  CHECK(has_chinese("\xE5\xBC\xA0 b"));
  CHECK_FALSE(has_chinese("b"));
}

TEST_CASE("the files that the glossary names are there") {
  static const std::regex file("`([a-z_/]+\\.(?:h|cpp))`");
  const std::string text = read_text(root / "apps/book/glossary.md");
  size_t named = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), file), end; at != end; ++at, ++named) {
    CAPTURE((*at)[1].str());
    CHECK(std::filesystem::exists(root / (*at)[1].str()));
  }
  CHECK(named >= 15);
}

TEST_CASE("the book's README links every chapter") {
  const std::string text = read_text(root / "apps/book/README.md");
  for (int chapter = 0; chapter <= 9; ++chapter) {
    const std::string link = "ch" + std::to_string(chapter) + "/README.md";
    CAPTURE(link);
    CHECK(text.find("](" + link + ")") != text.npos);
  }
}
