// Chapter 9. Parallel text: two files, where line i of one is the translation of line i of the other; or two columns of
// a table, such as texts and their summaries.
//
// A pair that cannot be used is left out as a pair, so that the two sides never lose step with each other, and counted
// by its kind. Files of unequal length are an error, because nobody can tell which line is missing.
//
// Batches of sentence pairs: as many as fit into a number of tokens, of similar lengths, in random order.
// Paper, section 5.1: "Sentence pairs were batched together by approximate sequence length. Each training batch
// contained a set of sentence pairs containing approximately 25000 source tokens and 25000 target tokens."
// A batch is a rectangle, filled up with padding, so sentences of the same length waste least. In each epoch
//   1. the pairs are put into a random order, then sorted by source length and among these by target length; pairs of
//      equal lengths stay in random order, so batches are never composed the same way twice,
//   2. this order is cut into batches,
//   3. the batches are put into a random order.
// Where the cuts are depends on the lengths alone, so every epoch has the same number of batches.
// Shapes, for rows "source end" and "begin target end":
//   source [B, S]   source end   pad...
//   target [B, T]   begin target pad...      what the decoder reads
//   labels [B, T]   target end   pad...      what it must predict
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/data/vocabulary.h"
#include "core/random.h"
#include "core/tensor.h"

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

struct TranslationBatch {
  Tensor source, target, labels;  // i32
  i64 source_tokens = 0;          ///< those of the source that are not padding
  i64 tokens = 0;                 ///< the same of the labels
};

/// Sentences as the encoder reads them: i32 [B, S], each with its end, then padding.
Tensor source_tensor(const std::vector<std::span<const i32>>& sentences);

/// The size of a batch.
struct BatchShape {
  i64 rows = 0, source_length = 0, target_length = 0;

  /// What the limit of tokens counts: the larger one of the two rectangles.
  i64 tokens() const { return rows * std::max(source_length, target_length); }
};

/// Which pairs, or texts, of which only the source has a length, stand together in a batch.
class BatchesByLength {
 public:
  using Lengths = std::pair<i64, i64>;  // of source and target
  /// Batches that grow as long as `fits` says so. `numbers` decides the order of every epoch.
  BatchesByLength(std::vector<Lengths> lengths, const std::function<bool(const BatchShape&)>& fits, const Rng& numbers);

  i64 in_epoch() const { return static_cast<i64>(shapes_.size()); }
  /// The sizes of the batches of an epoch, before they are put into random order.
  const std::vector<BatchShape>& shapes() const { return shapes_; }
  /// The items of batch number `number`, counted from 0 over all epochs. They depend on nothing else.
  std::span<const i64> batch(i64 number);
  /// Those of the batches in the order of their lengths, which is not random.
  std::span<const i64> sorted_batch(i64 number) const { return part(in_order_, number); }

 private:
  std::vector<i64> sorted(std::vector<i64> items) const;
  std::span<const i64> part(const std::vector<i64>& order, i64 number) const;
  void shuffle(i64 epoch);

  std::vector<Lengths> lengths_;
  Rng numbers_;
  std::vector<i64> in_order_;       // the items by length, and among equal lengths in their own order
  std::vector<BatchShape> shapes_;  // of the batches that this order is cut into
  std::vector<i64> begins_;         // where each begins in the order
  i64 epoch_ = -1;
  std::vector<i64> order_;    // the items of this epoch
  std::vector<i64> batches_;  // the numbers of this epoch's batches
};

class TranslationBatches {
 public:
  /// Batches of at most `most_tokens` tokens, padding included. `numbers` decides the order of every epoch. The corpus
  /// must outlive the batches. Error: a pair that is longer than a batch.
  TranslationBatches(const Corpus& corpus, i64 most_tokens, const Rng& numbers);
  TranslationBatches(const Corpus&&, i64, const Rng&) = delete;  // it would not outlive them

  i64 in_epoch() const { return pairs_.in_epoch(); }
  const std::vector<BatchShape>& shapes() const { return pairs_.shapes(); }
  /// As those of BatchesByLength.
  TranslationBatch batch(i64 number) { return batch_of(pairs_.batch(number)); }
  TranslationBatch sorted_batch(i64 number) const { return batch_of(pairs_.sorted_batch(number)); }

 private:
  TranslationBatch batch_of(std::span<const i64> pairs) const;

  const Corpus& corpus_;
  BatchesByLength pairs_;
};

}  // namespace orrery::translate
