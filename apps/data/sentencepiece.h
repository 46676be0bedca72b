// Chapter 9. Pieces of words: SentencePiece's unigram model finds them in a text, and cuts other texts into them.
//
// Each piece has a score, the logarithm of its probability. Of all ways to cut a text into pieces, the model takes the
// one with the largest sum of scores ("Subword Regularization", Kudo 2018).
//
// A model of SentencePiece may contain tables that its library follows without checking them. So no such model is ever
// read from a file. A vocabulary is stored as a list of pieces and scores, and the model is built from that list, after
// training too.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary.h"

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace orrery {

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
