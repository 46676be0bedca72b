// Chapter 9. WordPiece: text as the tokens of BERT, from its vocab.txt.
//
// Devlin et al. 2018, section 3: "We use WordPiece embeddings (Wu et al., 2016) with a 30,000 token vocabulary." First
// control characters vanish and, in a model of small letters, capitals and accents. Words end at white space and at
// punctuation, which is a word of its own, as each Chinese character is. A word becomes the longest piece of the
// vocabulary that it begins with, then the longest that it goes on with, and so on:
//   unaffable   is   un ##aff ##able
// A word with a rest that no piece begins, or of more than 100 characters, is [UNK]. The names of special tokens in a
// text stand for these tokens. The ids are those of Hugging Face's tokenizers (tests/fixtures/word_piece.py compares).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace orrery {

/// What a BERT reads: [CLS] first [SEP], or [CLS] first [SEP] second [SEP], whose segments are 0 and 1.
struct BertText {
  std::vector<i32> ids, segments;
  i64 left_out = 0;  ///< tokens that were more than `most`
};

/// Copies share their contents, which never change.
class WordPiece {
 public:
  /// Of Hugging Face's vocab.txt and, if there is one beside it, tokenizer_config.json for "do_lower_case". Errors: of
  /// reading; those of the constructor; an option that changes what we do.
  static WordPiece of_file(const std::string& vocabulary);
  /// `vocabulary` has a token on each line, whose ids are their numbers from 0. Errors: it is not UTF-8; it has no
  /// [PAD], [UNK], [CLS], [SEP] or [MASK].
  explicit WordPiece(const std::string& vocabulary, bool lower_case = true);

  i64 size() const;
  i32 pad() const, unknown() const, cls() const, sep() const, mask() const;
  const std::string& token(i32 id) const;

  /// The tokens of a text, without [CLS] and [SEP]. Error: text that is not UTF-8.
  std::vector<i32> ids(std::string_view text) const;
  /// What a BERT reads, at most `most` tokens: what is too long loses its end, the longer text of two first.
  BertText read(std::string_view text, i64 most) const;
  BertText read(std::string_view first, std::string_view second, i64 most) const;
  /// The pieces joined to words with spaces between them, without special tokens. Error: no such id.
  std::string text(std::span<const i32> ids) const;

  /// What a vocab.txt has, and the "do_lower_case" beside it.
  std::string vocab_txt() const;
  bool lower_case() const;
  /// As JSON, for the metadata of a saved model; and back. Errors: text that is no such vocabulary.
  std::string to_json() const;
  static WordPiece from_json(const std::string& json);

 private:
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

}  // namespace orrery
