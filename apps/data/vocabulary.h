// Chapter 9. A vocabulary: text as token ids and back.
//
// A word that a training text never had would have no id. So sentences are cut into pieces of words, and rare words
// become several pieces: "Neural Machine Translation of Rare Words with Subword Units" (Sennrich et al. 2016). There
// are three kinds of vocabulary.
//   SentencePiece   finds the pieces itself, in text as people write it ("SentencePiece: A simple and language
//                   independent subword tokenizer and detokenizer for Neural Text Processing", Kudo and Richardson
//                   2018). A piece that begins a word begins with U+2581, so that the pieces of a sentence can be
//                   joined to the same sentence again.
//   exact           SentencePiece for running text, from which every byte comes back. Spaces stay as they are, and a
//                   character without a piece becomes its bytes, each a token: "<0x0A>" is the end of a line.
//   segmented       the text is cut already. Tokens stand between spaces, and "@@" at the end of one says that the
//                   word goes on, as subword-nmt writes it. Every token of the training text has an id.
// A translator's sentences are of the first or the last kind. They are read in one spelling (unicode.h), in training
// and later; a vocabulary that was saved before there was such a spelling takes characters as they are. Both languages
// share one vocabulary, because a model with shared embeddings needs that (paper, section 3.4). A language model's text
// is of the second kind.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace orrery {

/// The ids that are no piece of text. The last three are not used in translation: encoders that are trained on
/// sentences need them.
inline constexpr i32 pad_id = 0, unknown_id = 1, begin_id = 2, end_id = 3, cls_id = 4, sep_id = 5, mask_id = 6;
/// The id of the first piece of text.
inline constexpr i32 first_piece_id = 7;
/// No vocabulary has more tokens.
inline constexpr i64 largest_vocabulary = i64{1} << 20;

/// Under this key, the metadata of a model have its vocabulary as JSON.
inline constexpr std::string_view vocabulary_key = "vocabulary";

/// Copies share their contents, which never change.
class Vocabulary {
 public:
  /// Pieces found by SentencePiece (the unigram model) in these lines. There are at most `size` tokens in all, fewer if
  /// the text is small. The same lines give the same pieces for any number of cores. Errors: no text; a `size` that
  /// does not hold the letters of the text.
  static Vocabulary of_text(const std::vector<std::string_view>& lines, i64 size);
  /// The same for running text, exact: the 256 bytes are among the tokens.
  static Vocabulary of_running_text(const std::vector<std::string_view>& lines, i64 size);
  /// The tokens between the spaces of these lines, the most frequent ones first. Errors: no text; more tokens than
  /// `largest_vocabulary`.
  static Vocabulary of_segmented(const std::vector<std::string_view>& lines);

  bool is_segmented() const;
  bool is_exact() const;
  /// Whether lines are read in one spelling.
  bool is_normalized() const;
  i64 size() const;
  /// The tokens of a line, without begin and end; of any text, if the vocabulary is exact. What the vocabulary does not
  /// have is `unknown_id`. Error: text that is not UTF-8.
  std::vector<i32> ids(std::string_view line) const;
  /// How many letters of a line `unknown_id` stands for, which may stand for several; of segmented text, how many
  /// tokens. An exact vocabulary knows all. Error: text that is not UTF-8.
  i64 unknown_letters(std::string_view line) const;
  /// The line that the tokens stand for, with whole words. Named ids are left out; an unknown token is shown, except by
  /// an exact vocabulary. Error: an id that is not in the vocabulary.
  std::string text(std::span<const i32> ids) const;
  /// One token as it is, such as "büsch@@", or its name, such as "<pad>".
  const std::string& token(i32 id) const;
  /// The score of one of SentencePiece's pieces (apps/data/sentencepiece.cpp).
  double score(i32 id) const;

  /// What a token of an exact vocabulary stands for: one byte, or the characters of a piece; "" for named ids. Error: a
  /// vocabulary of another kind.
  std::string text_of(i32 id) const;

  /// As JSON, for the metadata of a saved model; and back. Errors: text that is no vocabulary.
  std::string to_json() const;
  static Vocabulary from_json(const std::string& json);

 private:
  struct Contents;
  static Vocabulary trained(const std::vector<std::string_view>& lines, i64 size, bool exact);
  explicit Vocabulary(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

/// The names of the tokens before the pieces, in the order of their ids.
inline constexpr std::array<std::string_view, first_piece_id> token_names{"<pad>", "<unk>", "<s>",   "</s>",
                                                                          "[CLS]", "[SEP]", "[MASK]"};

/// What the errors of vocabularies begin with.
inline constexpr std::string_view vocabulary_operation = "vocabulary";
/// U+2581, which stands for a space in SentencePiece's pieces.
inline constexpr std::string_view space_mark = "\xE2\x96\x81";
/// The most characters of a piece.
inline constexpr size_t longest_piece = 16;
/// An exact vocabulary has a token for each byte.
inline constexpr size_t bytes_in_all = 256;
/// How many tokens stand before the first piece: those with names, and in an exact vocabulary those of the bytes.
size_t tokens_before_pieces(bool exact);

struct ScoredPieces {
  std::vector<std::string> pieces;
  std::vector<float> scores;  ///< one for each piece
};

/// Learns pieces for a vocabulary of at most `size` tokens. An exact one has a piece for a space, whether the text has
/// spaces or not. The lines must be UTF-8, and not all empty (`Vocabulary` checks it). Errors: a `size` that is too
/// large, or too small for the text; a text from which SentencePiece cannot learn.
ScoredPieces learn_pieces(const std::vector<std::string_view>& lines, i64 size, bool exact);

/// Cuts text into tokens, and joins them.
class PieceModel {
 public:
  /// `tokens` and `scores` are of the whole vocabulary, in the order of the ids. An `exact` model keeps every space,
  /// and makes bytes of characters without a piece.
  PieceModel(const std::vector<std::string>& tokens, const std::vector<float>& scores, bool exact);
  ~PieceModel();

  void add_ids(std::string_view text, std::vector<i32>& ids) const;
  /// How many characters the unknown tokens of a text stand for.
  i64 unknown_letters(std::string_view text) const;
  /// The text of a model that is not exact.
  std::string joined(const std::vector<int>& ids) const;

 private:
  void add_pieces(std::string_view text, std::vector<i32>& ids) const;

  bool exact_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace orrery
