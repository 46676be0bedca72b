// Chapter 9. Texts in Markdown as the tests see them: prose, and blocks with the link and the command that name their
// source.
#pragma once

#include <map>
#include <regex>
#include <set>

#include "tests/style_source.h"

namespace orrery::style {

/// A block between lines that begin with ```, and the last link to a source file and the last command before it.
struct Block {
  std::string language;  ///< "cpp"; "" where none is given
  Words lines;
  std::string linked;   ///< the target as written, "tape.cpp"
  std::string command;  ///< "apps/run book/ch2/tape.cpp"
  size_t line = 0;      ///< where it begins, counted from 1
};

/// A text: its blocks, and its lines with those of the blocks left empty.
struct Text {
  std::vector<Block> blocks;
  Words prose;
};

/// What the first group of `pattern` matches in a line, in order.
inline Words matches_in(const std::string& line, const std::regex& pattern) {
  Words result;
  for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at) result.push_back((*at)[1]);
  return result;
}

/// Where a line's text begins, if it opens or closes a block; else npos.
inline size_t fence_in(const std::string& line) {
  const size_t indent = line.find_first_not_of(' ');
  return indent != line.npos && line.compare(indent, 3, "```") == 0 ? indent : line.npos;
}

inline Text parse_text(const Words& lines) {
  static const std::regex link(R"(\]\(([A-Za-z_0-9./]+\.(?:cpp|h|diff))\))");
  static const std::regex command("(?:^|`)(apps/run [^`]*\\.cpp)");
  Text text;
  std::string linked, run;
  for (size_t i = 0; i < lines.size(); ++i) {
    const size_t indent = fence_in(lines[i]);
    if (indent == std::string::npos) {
      text.prose.push_back(lines[i]);
      if (const Words named = matches_in(lines[i], link); !named.empty()) linked = named.back();
      if (const Words named = matches_in(lines[i], command); !named.empty()) run = named.back();
      continue;
    }
    Block block{lines[i].substr(indent + 3), {}, linked, run, i + 1};
    while (++i < lines.size() && fence_in(lines[i]) == std::string::npos) {
      block.lines.push_back(lines[i].substr(std::min({indent, lines[i].find_first_not_of(' '), lines[i].size()})));
      const Words named = matches_in(block.lines.back(), command);
      if (block.language == "sh" && !named.empty()) run = named.back();
    }
    text.prose.resize(std::min(i + 1, lines.size()));
    text.blocks.push_back(std::move(block));
  }
  return text;
}

/// The first line of `part` that `whole` does not have after those before it; "" if it has them all, in this order.
inline std::string missing_line(const Words& part, const Words& whole) {
  size_t at = 0;
  for (const std::string& line : part) {
    while (at < whole.size() && whole[at] != line) ++at;
    if (at++ == whole.size()) return line;
  }
  return "";
}

/// What a pattern's first group matches outside of blocks of C++.
inline std::set<std::string> found_in(const Words& lines, const std::regex& pattern) {
  std::set<std::string> result;
  bool program = false;
  for (const std::string& line : lines) {
    if (line.starts_with("```")) program = line == "```cpp";
    if (program) continue;
    for (const std::string& match : matches_in(line, pattern)) result.insert(match);
  }
  return result;
}

inline Words lines_of(const std::string& path) { return split_lines(contents(root / path)); }

/// The texts of a chapter of the book in English: README.md, and behind it its other parts by their names.
inline Words texts_of_chapter(int number) {
  Words texts;
  for (const auto& entry : std::filesystem::directory_iterator(root / "apps/book" / ("ch" + std::to_string(number))))
    if (const std::string path = entry.path().lexically_relative(root).generic_string();
        path.ends_with(".md") && !path.ends_with(".zh.md"))
      texts.push_back(path);
  std::sort(texts.begin(), texts.end());
  return texts;
}

/// "apps/book/ch4/README.zh.md" for "apps/book/ch4/README.md".
inline std::string in_chinese(const std::string& text) { return text.substr(0, text.rfind(".md")) + ".zh.md"; }

}  // namespace orrery::style
