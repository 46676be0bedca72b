// Chapter 9. Texts for a BERT that knows their labels, one for each text or one for each word: as tokens, and back.
//
// A text is read as [CLS] pieces [SEP], or in parts, each a segment: [CLS] first part [SEP] others [SEP]. The label
// of a text is read from [CLS], that of a word from its first piece (Devlin et al. 2018, "BERT", sections 4 and 5.3).
// What is beyond the most tokens of a text is cut off.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/data/corpus.h"
#include "apps/data/vocabulary.h"
#include "apps/data/word_piece.h"
#include "apps/training/ranks.h"
#include "core/files/safetensors.h"
#include "nn/models/bert.h"

namespace orrery {

/// The tokens of an encoder: pieces of words from BERT's vocab.txt, or those that SentencePiece found in a user's own
/// texts.
class TextTokens {
 public:
  explicit TextTokens(Vocabulary pieces) : pieces_(std::move(pieces)) {}
  explicit TextTokens(WordPiece pieces) : pieces_(std::move(pieces)) {}

  i64 size() const;
  i32 cls() const { return special(&WordPiece::cls, cls_id); }
  i32 sep() const { return special(&WordPiece::sep, sep_id); }
  i32 pad() const { return special(&WordPiece::pad, pad_id); }
  i32 unknown() const { return special(&WordPiece::unknown, unknown_id); }
  i32 mask() const { return special(&WordPiece::mask, mask_id); }
  /// Whether it stands for no text: one of these and, in SentencePiece's, begin and end.
  bool is_special(i32 id) const;
  /// Whether a word may begin with it. Scripts without spaces may be cut anywhere.
  bool begins_word(i32 id) const;
  /// A token as it is, such as "##ing"; tokens as text, without those that are named.
  const std::string& token(i32 id) const;
  std::string text(std::span<const i32> ids) const;
  /// The pieces of a text or a word, without [CLS] and [SEP]. Error: text that is not UTF-8.
  std::vector<i32> ids(std::string_view text) const;

  /// Pieces of words from a vocab.txt; null if they are SentencePiece's.
  const WordPiece* word_pieces() const { return std::get_if<WordPiece>(&pieces_); }
  /// As metadata of a model.
  Metadata metadata() const;
  /// Those in the metadata of the model at `path`; nothing if there are none. Error: they are damaged.
  static std::optional<TextTokens> in(const Metadata& metadata, const std::string& path);
  /// The same, or those of the vocab.txt beside the model. Error: there is none.
  static TextTokens of_model(const Metadata& metadata, const std::string& path);
  /// Error of "load PATH": the model there has not so many tokens.
  void check_fit(const nn::BertConfig& config, const std::string& path) const;

 private:
  i32 special(i32 (WordPiece::*of_words)() const, i32 of_pieces) const;

  std::variant<Vocabulary, WordPiece> pieces_;
};

/// A text and what is known of it.
struct LabelledText {
  std::vector<std::string> words{};   ///< or the whole text in one part or several, if it has one label
  std::vector<std::string> labels{};  ///< one for each; none if they are to be found out
  std::string place{};                ///< "FILE, row 7 (line 9)", for errors; or "FILE, line " and
  std::vector<i64> lines{};           ///< those of the words, if each word has a line
  i64 story = 0;                      ///< which of a file a question is about, counted from 1; 0: it has none
};

/// The same as numbers.
struct EncodedText {
  std::vector<i32> ids{};
  std::vector<i32> places{};    ///< where in them the answers stand: of each word that is not cut off
  std::vector<i32> right{};     ///< the label of each word, as a number in the model's list
  std::vector<i32> segments{};  ///< the number of each token's part, or the last that the model has; none: all are 0
  i64 words = 0;                ///< that get an answer; 1 for a whole text
  i64 document = 0;             ///< in pretraining, of which text it is a part
  bool is_cut = false;
};
using EncodedTexts = std::vector<EncodedText>;

/// Reads texts as a model does, whose head is of sentences or of tokens.
struct TextReader {
  TextTokens tokens;
  nn::BertConfig config;
  i64 most_tokens = 0;  ///< of a text, [CLS] and [SEP] included

  /// A word without pieces, of which a label is to be read, is unknown. Errors: a label that the model does not have,
  /// with its place; text that is not UTF-8.
  EncodedText operator()(const LabelledText& text) const;
  EncodedTexts operator()(const std::vector<LabelledText>& texts) const;
};

/// Batches of at most so many texts, and tokens with padding; a longer text stands alone.
translate::BatchesByLength batches_of(const EncodedTexts& texts, i64 rows, const Rng& numbers,
                                      i64 tokens = std::numeric_limits<i64>::max());
/// i32 [B, S] with the ids of some texts, filled up with `pad`.
Tensor ids_of(const EncodedTexts& texts, std::span<const i64> items, i32 pad);
/// The same with their segments; undefined if all are 0.
Tensor segments_of(const EncodedTexts& texts, std::span<const i64> items);

/// What a model says of a text or a word.
struct Answer {
  i32 label = -1;  ///< a number in the model's list; -1: the word was cut off
  double probability = 0;
};
/// The answers for the words of a text, and the right ones, if they are known.
struct JudgedText {
  std::vector<Answer> answers{};
  std::vector<i32> right{};
};
using JudgedTexts = std::vector<JudgedText>;
/// Ranks may share the texts out.
JudgedTexts judged(const nn::Bert& model, const EncodedTexts& texts, Ranks& ranks = Ranks::alone());

/// Adds a text as parts of at most `most` tokens, each with the places where its words begin, at least two. A word that
/// is longer than that becomes several. Adds to `few` how many are left out, as they have no two words.
void add_parts(const EncodedText& text, i64 most, EncodedTexts& parts, i64& few);
/// The same of all texts.
EncodedTexts parts_of(const std::vector<LabelledText>& texts, const TextTokens& tokens, i64 most, i64& few);

/// Pairs of sentences as a BERT reads them, with some of their words hidden.
struct PretrainingBatch {
  Tensor ids, segments;  ///< i32 [B, S]
  Tensor words;          ///< i32 [B, S]: what the ids hide, and elsewhere what cross_entropy ignores
  Tensor next;           ///< i32 [B]: 0 where B follows A, 1 where it does not
  i64 hidden = 0;
};
/// Some of `texts`, each cut between two of its words; half of the second parts are replaced by as many tokens of
/// another document (of the same one, if there is no other). Those of one document stand side by side.
/// Of each row one token in seven is hidden, at least one (apps/tasks/pretrain.cpp). All follows from `numbers`.
PretrainingBatch pretraining_batch(const TextTokens& tokens, const EncodedTexts& texts, std::span<const i64> items,
                                   Rng& numbers);

}  // namespace orrery
