// Chapter 8. The source tree as the style tests see it: files, lines, lines without comments and texts, chapters.
#pragma once

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/core/temporary_folder.h"

namespace orrery::style {

using Words = std::vector<std::string>;

inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Where `word` stands in `text` with no letter, digit or underscore beside it, from `start` on; npos if nowhere.
inline size_t find_word(std::string_view text, std::string_view word, size_t start = 0) {
  for (size_t at = text.find(word, start); at != text.npos; at = text.find(word, at + 1)) {
    const size_t after = at + word.size();
    if ((at == 0 || !is_word(text[at - 1])) && (after == text.size() || !is_word(text[after]))) return at;
  }
  return text.npos;
}
inline bool has_word(std::string_view text, std::string_view word) { return find_word(text, word) != text.npos; }

/// The identifier that ends right before `end`, without spaces.
inline std::string word_before(std::string_view text, size_t end) {
  while (end > 0 && text[end - 1] == ' ') --end;
  size_t begin = end;
  while (begin > 0 && is_word(text[begin - 1])) --begin;
  return std::string(text.substr(begin, end - begin));
}

inline Words split_lines(const std::string& text) {
  Words lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Without the spaces at both ends.
inline std::string stripped(const std::string& line) {
  const size_t first = line.find_first_not_of(' '), last = line.find_last_not_of(' ');
  return first == line.npos ? "" : line.substr(first, last - first + 1);
}
inline Words stripped(Words lines) {
  for (std::string& line : lines) line = stripped(line);
  return lines;
}

/// Columns of a terminal, not bytes: in UTF-8 a byte 10xxxxxx continues a letter. A letter of three bytes from U+2E80
/// on, such as a Chinese one, takes two columns.
inline size_t columns_of(const std::string& line) {
  size_t columns = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const auto byte = [&](size_t at) { return at < line.size() ? static_cast<unsigned char>(line[at]) : 0u; };
    const bool continues = (byte(i) & 0xC0) == 0x80;
    const bool wide = (byte(i) & 0xF0) == 0xE0 && ((byte(i) & 0xF) << 6 | (byte(i + 1) & 0x3F)) >= 0x2E80 >> 6;
    columns += continues ? 0 : wide ? 2 : 1;
  }
  return columns;
}

/// The text with comments and the contents of string and character literals blanked, its lines kept.
inline std::string blanked(std::string text) {
  enum { code, line_comment, block_comment, string, character, raw_string } state = code;
  std::string raw_end;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view here = std::string_view(text).substr(i);
    bool blank = state != code;
    if (state == code && here.starts_with("//")) {
      state = line_comment;
      blank = true;
    } else if (state == code && here.starts_with("/*")) {
      state = block_comment;
      blank = true;
    } else if (state == code && here.starts_with("R\"") && here.find('(') != here.npos) {
      state = raw_string;
      raw_end = ")" + std::string(here.substr(2, here.find('(') - 2)) + "\"";
    } else if (state == code && c == '"') {
      state = string;
    } else if (state == code && c == '\'' && (i == 0 || !is_word(text[i - 1]))) {
      state = character;  // 1'000 is a number
    } else if (state == line_comment && c == '\n') {
      state = code;
    } else if (state == block_comment && here.starts_with("*/")) {
      state = code;
      text[i++] = ' ';
    } else if ((state == string || state == character) && c == '\\') {
      text[i++] = ' ';
    } else if ((state == string && c == '"') || (state == character && c == '\'')) {
      state = code;
      blank = false;
    } else if (state == raw_string && here.starts_with(raw_end)) {
      state = code;
      blank = false;
      for (size_t left = raw_end.size() - 1; left > 0; --left) text[i++] = ' ';  // all but the quotation mark
    }
    if (blank && text[i] != '\n') text[i] = ' ';
  }
  return text;
}

/// One source file.
struct Source {
  std::string path;   ///< from the root of the repository
  Words lines, code;  ///< as written; and without comments and texts
  int chapter = -1;   ///< -1 where line 1 names none

  std::string folder() const { return path.substr(0, path.rfind('/')); }
  std::string layer() const { return path.substr(0, path.find('/')); }
  std::string stem() const {
    const std::string name = path.substr(path.rfind('/') + 1);
    return name.substr(0, name.rfind('.'));
  }
  /// "path:line: " for messages; lines count from 0 here and from 1 there.
  std::string at(size_t line) const { return path + ":" + std::to_string(line + 1) + ": "; }
};
using Sources = std::vector<Source>;

inline Source make_source(std::string path, const std::string& text) {
  Source source{std::move(path), split_lines(text), split_lines(blanked(text)), -1};
  const std::string_view first = source.lines.empty() ? std::string_view() : source.lines[0];
  constexpr std::string_view start = "// Chapter ";
  const std::string_view after = first.substr(std::min(start.size(), first.size()));
  const size_t digits = std::min(after.find_first_not_of("0123456789"), after.size());
  if (first.starts_with(start) && (digits == 1 || digits == 2) && after.substr(digits).starts_with(". ") &&
      after.size() > digits + 2)
    source.chapter = std::stoi(std::string(after.substr(0, digits)));
  return source;
}

inline const std::filesystem::path root = ORRERY_SOURCE_DIR;

/// Answers to exercises and programs of the reader, for which no rule holds.
inline bool is_readers_own(const std::string& path) { return path.starts_with("apps/mine/"); }

/// Every .h and .cpp file of the repository, in the order of their paths.
inline const Sources& tree() {
  static const Sources all = [] {
    Sources sources;
    for (const std::string layer : {"core", "autograd", "nn", "optim", "apps", "tests"}) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(root / layer)) {
        const std::string extension = entry.path().extension();
        if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp")) continue;
        const std::string path = entry.path().lexically_relative(root).generic_string();
        if (!is_readers_own(path)) sources.push_back(make_source(path, contents(entry.path())));
      }
    }
    std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
    return sources;
  }();
  return all;
}

inline const Source* find_source(const Sources& sources, std::string_view path) {
  for (const Source& source : sources)
    if (source.path == path) return &source;
  return nullptr;
}

/// One violation a line, "" if there is none: what a test compares with "".
inline std::string report(const Words& violations) {
  std::string text;
  for (const std::string& violation : violations) text += "\n" + violation;
  return text;
}

/// What a check reports of one file of this text, beside a few others that it may name.
inline std::string report_of(Words (*check)(const Sources&), const std::string& path, const std::string& text) {
  return report(check({make_source(path, text), make_source("core/shape.h", "// Chapter 1. Shapes."),
                       make_source("nn/layers/linear.h", "// Chapter 5. Linear."),
                       make_source("core/machine/parallel.h", "// Chapter 8. Threads.")}));
}

}  // namespace orrery::style
