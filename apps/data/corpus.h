// Chapter 9. Parallel text: two files, where line i of one is the translation of line i of the other; or two columns of
// a table, such as texts and their summaries.
//
// A pair that cannot be used is left out as a pair, so that the two sides never lose step with each other, and counted
// by its kind. Files of unequal length are an error, because nobody can tell which line is missing.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary.h"

namespace orrery::translate {

/// Whether a line has nothing but ASCII's whitespace, the only one in one spelling (apps/data/unicode.h).
bool is_empty(std::string_view line);
/// Whether a line has the character NUL, a zero byte.
bool has_nul(std::string_view line);

/// What became of the pairs of two files.
struct PairCounts {
  i64 lines = 0;     ///< of each file
  i64 empty = 0;     ///< pairs of which at least one side has nothing but whitespace
  i64 not_utf8 = 0;  ///< pairs of which at least one side is not UTF-8
  i64 with_nul = 0;  ///< pairs of UTF-8 of which at least one side has a NUL
  i64 too_long = 0;  ///< pairs of which at least one side has too many tokens
  i64 cut = 0;       ///< used pairs of which a side was cut off at so many tokens

  /// The pairs that are used.
  i64 used() const { return lines - empty - not_utf8 - with_nul - too_long; }
  /// "29000 pairs", and if some are left out
  /// "28990 of 29000 pairs (left out: 7 with an empty side, 3 longer than 256 tokens)"; at the end perhaps
  /// ", 12 cut off at 256 tokens".
  std::string text(i64 most_tokens) const;
};

/// Pairs of lines: views into the two texts, which all copies share.
struct LinePairs {
  std::shared_ptr<const std::string> source_text{}, target_text{};
  std::vector<std::string_view> source{}, target{};
  PairCounts counts{};

  i64 size() const { return static_cast<i64>(source.size()); }
};

/// How lines are read: in one spelling (apps/data/unicode.h), or as they are in the file.
enum class Spelling { normalized, as_it_is };
/// The pairs of two files, whose lines are those of `lines_of` (apps/data/text_file.h). Errors: a file that cannot be
/// read or is empty; files with different numbers of lines, naming both.
LinePairs read_pairs(const std::string& source_path, const std::string& target_path,
                     Spelling spelling = Spelling::normalized);

/// Two columns of a table (table.h).
struct PairColumns {
  std::string source, target;
  std::string source_option{}, target_option{};  ///< that say other names, for `Table::column`
};
/// The pairs in these columns. Line ends inside a field are spaces. Only its first `most_words` words are read, each of
/// which is a token or more. Errors: those of `read_table` and `Table::column`; a field with nothing but whitespace,
/// naming its row.
LinePairs read_pairs(const std::string& table, const PairColumns& columns, i64 most_words, Spelling spelling);

/// The pairs to train with, and those held out for validation.
struct SplitPairs {
  LinePairs training, validation;
};
/// Holds out a twentieth of the pairs for validation, at least one and at most 2,000. Which pairs these are depends
/// only on their sources, and pairs of one source stay together: what is validated was never learned, not even with
/// another translation. A very frequent source can therefore make that part larger or smaller. Errors: fewer than two
/// pairs; all sources are equal.
SplitPairs hold_out(const LinePairs& pairs);

/// Sentences as token ids, one after another.
class TokenLines {
 public:
  void add(std::span<const i32> ids);
  i64 size() const { return static_cast<i64>(ends_.size()); }
  std::span<const i32> operator[](i64 line) const;
  i64 length(i64 line) const { return static_cast<i64>((*this)[line].size()); }
  /// The number of tokens in all lines.
  i64 tokens() const { return static_cast<i64>(ids_.size()); }

 private:
  std::vector<i32> ids_;
  std::vector<size_t> ends_;
};

/// Pairs of sentences as token ids, without begin and end.
struct Corpus {
  TokenLines source, target;
  PairCounts counts;

  i64 size() const { return source.size(); }
};

/// The lines of both sides to learn a vocabulary from. Pairs are left out that would have more than `most_tokens`
/// tokens on a side, whatever is learned: every word is at least a token, and SentencePiece has no piece of more than
/// `longest_piece` characters; only a run of characters without a piece becomes a single token. They are not trained
/// with, and a line of 100,000 words alone would take SentencePiece minutes. Error: there is none.
std::vector<std::string_view> lines_to_learn(const LinePairs& pairs, bool segmented, i64 most_tokens);

/// What becomes of a side with too many tokens.
enum class TooLong { left_out, cut };
/// The pairs of at most `most_tokens` tokens on each side, or all of them, each side cut off there. Error: there is
/// none.
Corpus corpus_of(const LinePairs& pairs, const Vocabulary& vocabulary, i64 most_tokens,
                 TooLong too_long = TooLong::left_out);

}  // namespace orrery::translate
