// Chapter 9. CoNLL's columns, line by line.
#include "apps/data/conll.h"

#include <algorithm>

#include "apps/data/characters.h"
#include "apps/data/table.h"
#include "apps/data/text_file.h"
#include "core/error.h"

namespace orrery {
namespace {

// What stands between tabs, or between runs of spaces.
std::vector<std::string_view> line_fields(std::string_view line, char separator) {
  std::vector<std::string_view> columns;
  for (size_t begin = 0; begin <= line.size();) {
    const size_t end = std::min(line.find(separator, begin), line.size());
    if (separator == '\t' || end > begin) columns.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return columns;
}

}  // namespace

TaggedText read_conll(const std::string& path, const ConllColumns& columns) {
  const std::string text = read_text(path);
  check_utf8(text, path, "conll");
  TaggedText result;
  char separator = 0;  // not known before the first token
  i64 count = 0, line_number = 0;
  bool in_sentence = false;
  for (const std::string_view line : lines_of(text)) {
    ++line_number;
    if (line.find_first_not_of(ascii_space) == line.npos) {
      in_sentence = false;
      continue;
    }
    const bool is_comment = !in_sentence && line.starts_with("# ") &&
                            (line.find(" = ") != line.npos || line == "# newdoc" || line == "# newpar");
    if (is_comment || line.starts_with("-DOCSTART-")) {
      ++result.marks;
      in_sentence = false;
      continue;
    }
    if (separator == 0) separator = line.find('\t') == line.npos ? ' ' : '\t';
    const std::vector<std::string_view> fields = line_fields(line, separator);
    const i64 here = static_cast<i64>(fields.size());
    if (count == 0) count = here;
    check(here == count, "conll", path, ", line ", line_number, " has ", here, here == 1 ? " column" : " columns",
          " instead of ", count);
    const auto field = [&](i64 column, const char* name) {
      const i64 at = column < 0 ? column + count : column;
      check(at >= 0 && at < count, "conll", path, " has ", count, " columns, and none with number ",
            column < 0 ? column : column + 1);  // as the program's options count
      check(!fields[static_cast<size_t>(at)].empty(), "conll", path, ", line ", line_number, " has an empty ", name);
      return std::string(fields[static_cast<size_t>(at)]);
    };
    if (!in_sentence) result.sentences.push_back({.tokens = {}, .tags = {}, .line = line_number});
    in_sentence = true;
    result.sentences.back().tokens.push_back(field(columns.token, "token"));
    result.sentences.back().tags.push_back(field(columns.tag, "tag"));
  }
  check(!result.sentences.empty(), "conll", path, " has no sentence");
  return result;
}

}  // namespace orrery
