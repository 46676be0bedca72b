// Chapter 9. Tables of text, in one walk over the bytes, field by field; CoNLL's columns, line by line.
#include "apps/data/table.h"

#include <algorithm>
#include <set>

#include "apps/data/text_file.h"
#include "apps/data/unicode.h"
#include "core/error.h"

namespace orrery {
namespace {

// Cuts a text into fields.
class Fields {
 public:
  Fields(std::string_view text, char separator, bool quotes) : text_(text), separator_(separator), quotes_(quotes) {}

  bool at_end() const { return at_ == text_.size(); }
  i64 line() const { return line_; }
  // Whether a line without any character begins here; then it is passed.
  bool passes_empty_line() {
    const size_t end = at_ + (text_.substr(at_).starts_with("\r\n") ? 1 : 0);
    if (end >= text_.size() || text_[end] != '\n') return false;
    at_ = end + 1;
    ++line_;
    return true;
  }
  std::vector<std::string> row(const std::string& place) {
    std::vector<std::string> fields;
    for (bool more = true; more;) {
      fields.push_back(quotes_ && !at_end() && text_[at_] == '"' ? quoted(place) : plain());
      more = !at_end() && text_[at_] == separator_;
      if (!at_end()) ++at_;  // the separator or the line feed
    }
    ++line_;
    return fields;
  }

 private:
  std::string plain() {
    const size_t begin = at_;
    while (!at_end() && text_[at_] != separator_ && text_[at_] != '\n') ++at_;
    std::string field(text_.substr(begin, at_ - begin));
    if (field.ends_with('\r') && (at_end() || text_[at_] == '\n')) field.pop_back();
    return field;
  }
  std::string quoted(const std::string& place) {
    std::string field;
    const i64 began = line_;
    for (++at_;; ++at_) {
      check(!at_end(), "table", place, ": the quotes that open in line ", began, " are not closed");
      if (text_[at_] == '"') {
        if (!text_.substr(at_).starts_with("\"\"")) break;
        ++at_;
      }
      line_ += text_[at_] == '\n';
      field += text_[at_];
    }
    ++at_;
    const std::string rest = plain();
    check(rest.empty(), "table", place, ": ", printable(rest), " stands after closing quotes");
    return field;
  }

  std::string_view text_;
  const char separator_;
  const bool quotes_;
  size_t at_ = 0;
  i64 line_ = 1;
};

std::string place_of(const std::string& path, size_t row, i64 line) {
  return path + ", row " + std::to_string(row) + " (line " + std::to_string(line) + ')';
}

// A table of a spreadsheet, named .csv, may have tabs or semicolons: those that its header has.
char separator_of(const std::string& path, std::string_view text) {
  if (path.ends_with(".tsv") || path.ends_with(".tab")) return '\t';
  const std::string_view header = text.substr(0, text.find('\n'));
  for (const char each : {',', '\t', ';'})
    if (path.ends_with(".csv") && header.find(each) != header.npos) return each;
  return ',';
}

}  // namespace

size_t Table::column(std::string_view name, std::string_view option) const {
  const auto found = std::find(names.begin(), names.end(), name);
  std::string all;
  for (const std::string& each : names) all += (all.empty() ? "" : ", ") + each;
  check(found != names.end(), "table", path, " has no column ", printable(name), "; its columns are ", all,
        option.empty() ? "" : "; choose one with ", option);
  return static_cast<size_t>(found - names.begin());
}

std::string Table::place(size_t row) const { return place_of(path, row + 1, lines.at(row)); }

Table read_table(const std::string& path, const TableOptions& options) {
  const std::string whole = read_text(path);
  check_utf8(whole, path, "table");
  std::string_view text = whole;
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const char separator = options.separator.value_or(separator_of(path, text));
  const bool quotes = options.quotes.value_or(separator != '\t' || path.ends_with(".csv"));
  Table table{.path = path, .names = {}, .rows = {}, .lines = {}};
  Fields fields(text, separator, quotes);
  while (!fields.at_end()) {
    if (fields.passes_empty_line()) {
      ++table.empty_lines;
      continue;
    }
    const bool is_first = table.names.empty(), header = is_first && options.header;
    const i64 line = fields.line();
    const std::string place = header ? path + ", header" : place_of(path, table.rows.size() + 1, line);
    std::vector<std::string> row = fields.row(place);
    for (size_t i = 0; is_first && i < row.size(); ++i)
      table.names.push_back(options.header ? row[i] : std::to_string(i + 1));
    check(!header || separator != ',' || row.size() > 1 || row[0].find('\t') == row[0].npos, "table", path,
          ": the header has tabs; name the file .tsv, or .csv if fields are in quotes");
    const bool has_quote =
        std::any_of(row.begin(), row.end(), [](const auto& field) { return field.find('"') != field.npos; });
    check(row.size() == table.names.size(), "table", place, " has ", row.size(), row.size() == 1 ? " field" : " fields",
          " instead of ", table.names.size(),
          has_quote && !quotes ? "; in a .tsv, quotes are characters; name the file .csv if fields are in quotes" : "");
    if (!header) {
      table.rows.push_back(std::move(row));
      table.lines.push_back(line);
    }
  }
  check(!table.rows.empty(), "table", path, options.header ? " has no row below its header" : " has no row");
  std::set<std::string_view> seen;
  for (const std::string& name : table.names)
    check(seen.insert(name).second, "table", path, ", header: two columns are called ", printable(name));
  return table;
}

void check_utf8(std::string_view text, const std::string& path, std::string_view operation) {
  const size_t at = first_not_utf8(text);
  const i64 line =
      at == text.npos ? 0 : 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  check(at == text.npos, operation, path, ", line ", line, ": byte ", at + 1, " begins no UTF-8 character");
}

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

// CoNLL-U numbers tokens 1, 2, ...; 1-2 is the word that these two were, as "zum" was "zu dem", and 8.1 one that is
// only thought of. Others count the tokens alone.
bool is_no_token(std::string_view number) {
  constexpr std::string_view digits = "0123456789";
  const size_t at = number.find_first_not_of(digits);
  return at > 0 && at != number.npos && (number[at] == '-' || number[at] == '.') && at + 1 < number.size() &&
         number.find_first_not_of(digits, at + 1) == number.npos;
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
    if (columns.token != 0 && columns.token + count != 0 && is_no_token(fields[0])) {
      ++result.marks;
      continue;
    }
    const auto field = [&](i64 column, const char* name) {
      const i64 at = column < 0 ? column + count : column;
      check(at >= 0 && at < count, "conll", path, " has ", count, " columns, and none with number ",
            column < 0 ? column : column + 1);  // as the program's options count
      check(!fields[static_cast<size_t>(at)].empty(), "conll", path, ", line ", line_number, " has an empty ", name);
      return std::string(fields[static_cast<size_t>(at)]);
    };
    if (!in_sentence) result.sentences.push_back({.tokens = {}, .tags = {}, .lines = {}});
    in_sentence = true;
    result.sentences.back().tokens.push_back(field(columns.token, "token"));
    result.sentences.back().tags.push_back(field(columns.tag, "tag"));
    result.sentences.back().lines.push_back(line_number);
  }
  check(!result.sentences.empty(), "conll", path, " has no sentence");
  return result;
}

}  // namespace orrery
