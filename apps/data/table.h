// Chapter 9. Tables of text: files of comma-separated or tab-separated values, with columns by name.
//
// In a .csv a field may be in quotes (RFC 4180): then it may have commas, line ends and, doubled, quotes. In a .tsv a
// quote is a character like any other, as in the files of GLUE: there a sentence may begin with a quote that no other
// closes. Both can be changed. A file that is wrong somewhere is refused, with its row and line; nothing is repaired.
//
// Sentences with a tag for each token, as CoNLL's shared tasks write them: a line has a token and what is known of it,
// in columns; an empty line ends a sentence.
//   EU      NNP  B-NP  B-ORG
//   rejects VBZ  B-VP  O
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace orrery {

struct TableOptions {
  std::optional<char> separator{};  ///< a tab if the name ends in .tsv or .tab; in .csv a comma, tab or semicolon, the
                                    ///< first of these that is in the header; or else a comma
  std::optional<bool> quotes{};     ///< whether fields may be in quotes; or else if .csv, or no tab stands between them
  bool header = true;               ///< the first row has the names of the columns; or else they are called 1, 2, ...
};

struct Table {
  std::string path;
  std::vector<std::string> names;              ///< of the columns
  std::vector<std::vector<std::string>> rows;  ///< without the header
  std::vector<i64> lines;                      ///< of the file, counted from 1, in which each row begins
  i64 empty_lines = 0;                         ///< left out

  /// The number of a column, counted from 0. Error: there is none of this name; the message names all, and the option
  /// that says another name, if there is one.
  size_t column(std::string_view name, std::string_view option = {}) const;
  /// "FILE, row 7 (line 9)": for the errors of those who read the table.
  std::string place(size_t row) const;
};

/// UTF-8, with or without a byte order mark; lines end with a line feed, or a carriage return and a line feed. Errors,
/// each naming file, row and line: text that is not UTF-8; a row with more or fewer fields than the first; quotes that
/// are not closed, or text after closing ones; two columns of one name. Others: no row, and those of `read_text`.
Table read_table(const std::string& path, const TableOptions& options = {});

/// Error of `operation` if `text`, the contents of file `path`, is not UTF-8; it names the line.
void check_utf8(std::string_view text, const std::string& path, std::string_view operation);

struct TaggedSentence {
  std::vector<std::string> tokens, tags;  ///< as many of both
  std::vector<i64> lines;                 ///< of the file, counted from 1, in which each token is
};

/// `marks` are lines left out: "-DOCSTART- ...", and CoNLL-U's "# key = value" or "# newpar" above sentences and, where
/// the tokens are in another column than the first, its words that are several (1-2) or none (8.1).
struct TaggedText {
  std::vector<TaggedSentence> sentences;
  i64 marks = 0;
};

/// Columns are counted from 0, or with negative numbers from the last one, -1.
struct ConllColumns {
  i64 token = 0, tag = -1;
};

/// Columns are separated by tabs if the first line with a token has a tab, or else by spaces. A line of nothing but
/// white space is empty. The text is UTF-8, with or without a byte order mark. Errors, each naming file and line: text
/// that is not UTF-8; a line with more or fewer columns than the first; an empty token or tag; a column that is not
/// there. Others: no sentence, and those of `read_text`.
TaggedText read_conll(const std::string& path, const ConllColumns& columns = {});

}  // namespace orrery
