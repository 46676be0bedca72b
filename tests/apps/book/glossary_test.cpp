// Chapter 0. The glossary: sorted, each word with its Chinese one, a sentence and a chapter, or a linked page, that has
// the word; the Chinese one has the same words. The book's README links every chapter, in both languages.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>

#include "tests/apps/book/text_rules.h"

namespace {

using namespace orrery::style;

struct Entry {
  std::string word, chinese, sentence, place;
};

// Rows "| word | 中文 | what it is | 2 |"; instead of a chapter, a word may have a link: "[lm](../tasks/lm/README.md)".
std::vector<Entry> entries_of(const std::string& text) {
  static const std::regex row("^\\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| ([0-9]|\\[.*\\]\\(.*\\)) \\|$");
  std::vector<Entry> entries;
  for (const std::string& line : split_lines(text))
    if (std::smatch match; std::regex_match(line, match, row))
      entries.push_back({match[1], match[2], match[3], match[4]});
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

// As it is read: in lower case, without marks of Markdown, one space between words, also where a quoted line ends.
std::string as_read(const std::string& text) {
  static const std::regex between("[\\s>]+");
  return std::regex_replace(spoken(text), between, " ");
}

// The words of an entry that a text, as it is read, has nowhere, nor their plural: of "pre-norm, post-norm" both, of
// "memory (of the encoder)" the first. A few words have another form in the texts.
Words missing_words(const Entry& entry, const std::string& text) {
  static const std::map<std::string, std::string> forms{
      {"analytic derivative", "analytic"},  {"attention weight", "weight"}, {"gradient check", "checker"},
      {"noam schedule", "noam's schedule"}, {"saturation", "saturated"},    {"xavier initialisation", "xavier"}};
  static const std::regex separator(", ");
  const std::string words = as_read(entry.word.substr(0, entry.word.find(" (")));
  Words missing;
  for (std::sregex_token_iterator at(words.begin(), words.end(), separator, -1), end; at != end; ++at) {
    const std::string word = forms.contains(*at) ? forms.at(*at) : at->str();
    if (!has_word(text, word) && !has_word(text, word + "s") && !has_word(text, word + "es")) missing.push_back(*at);
  }
  return missing;
}

}  // namespace

TEST_CASE("each word of the glossary stands in the chapter that explains it") {
  std::map<std::string, std::string> texts;
  for (const Entry& entry : entries_of(orrery::contents(root / "apps/book/glossary.md"))) {
    CAPTURE(entry.word);
    const size_t link = entry.place.find("](") + 2;
    const std::string path = entry.place.size() == 1 ? "ch" + entry.place + "/README.md"
                                                     : entry.place.substr(link, entry.place.size() - link - 1);
    if (!texts.contains(path)) texts[path] = as_read(orrery::contents(root / "apps/book" / path));
    CHECK(report(missing_words(entry, texts[path])) == "");
  }
  const std::string text = as_read("> A **micro\n> batch**, `post-norm` and\nLeaves of weights");
  const auto missing = [&](const std::string& word) { return report(missing_words({word, "", "", "2"}, text)); };
  CHECK(missing("micro batch") == "");
  CHECK(missing("attention weight") == "");
  CHECK(missing("pre-norm, post-norm") == "\npre-norm");
  CHECK(missing("weight (of a map)") == "");
  CHECK(missing("leaf") == "\nleaf");
}

TEST_CASE("the glossary has its words sorted, in two languages, each with a sentence") {
  const std::vector<Entry> entries = entries_of(orrery::contents(root / "apps/book/glossary.md"));
  CHECK(entries.size() >= 60);
  for (size_t i = 0; i < entries.size(); ++i) {
    CAPTURE(entries[i].word);
    CHECK(has_chinese(entries[i].chinese));
    CHECK(entries[i].sentence.ends_with("."));
    if (i > 0) CHECK(lower_case(entries[i - 1].word) < lower_case(entries[i].word));
  }
  const std::vector<Entry> translated = entries_of(orrery::contents(root / "apps/book/glossary.zh.md"));
  CHECK(translated.size() == entries.size());
  for (size_t i = 0; i < std::min(entries.size(), translated.size()); ++i) {
    CAPTURE(entries[i].word);
    CHECK(translated[i].word == entries[i].word);
    CHECK(translated[i].chinese == entries[i].chinese);
    CHECK(translated[i].place == entries[i].place);
    CHECK(translated[i].sentence.ends_with("\u3002"));
  }
  CHECK(entries_of("| a | \xE5\xBC\xA0 | B. | 2 |\n| a | b | c |\n| a | b | C. | [d](e/f.md) |\n").size() == 2);
  CHECK(has_chinese("\xE5\xBC\xA0 b"));
  CHECK_FALSE(has_chinese("b"));
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

TEST_CASE("the book's README links every chapter") {
  for (const std::string file : {"README.md", "README.zh.md"}) {
    const std::string text = orrery::contents(root / "apps/book" / file);
    for (int chapter = 0; chapter <= 9; ++chapter) {
      const std::string link = "ch" + std::to_string(chapter) + "/" + file;
      CAPTURE(link);
      CHECK(text.find("](" + link + ")") != text.npos);
    }
  }
}
