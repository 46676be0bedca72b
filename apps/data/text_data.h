// Chapter 9. What the tokens of a text are: its characters, its bytes, or pieces of words.
//
//   chars           every character that occurs, in the order of the code points, as in nanoGPT
//                   (data/shakespeare_char/prepare.py)
//   bytes           the 256 bytes: for any file
//   sentencepiece   pieces that SentencePiece finds in the text (apps/data/vocabulary.h, the exact kind), and the bytes
//   bpe             the byte pairs of a published GPT-2 (apps/data/byte_pairs.h)
// Whatever they are, a text becomes tokens and the same text again, to the byte.
//
// A text may consist of documents, with a line such as "---" between them. Told so, pieces and byte pairs make one
// token of it, which is no text: "</s>", or the <|endoftext|> that GPT-2 was trained with. No other token crosses it.
//
// The text of a language model: files as tokens, split into a part for training and a part for validation.
//
// The first nine tenths are for training, the rest for validation, as in nanoGPT (data/shakespeare_char/prepare.py). Of
// a long text, only the last million tokens are for validation, so that an evaluation does not take hours.
// Several files count as one text, in their order. They are read in pieces, and their tokens need not fit into memory
// (apps/data/text.h), so files may be of any length.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/byte_pairs.h"
#include "apps/data/text.h"
#include "apps/data/vocabulary.h"
#include "core/files/safetensors.h"

namespace orrery {

enum class TokenKind { chars, bytes, sentencepiece, bpe };
/// Their names, in their order.
constexpr std::array<std::string_view, 4> names(TokenKind) { return {"chars", "bytes", "sentencepiece", "bpe"}; }

/// Characters and their numbers, in the order of their code points.
class Alphabet {
 public:
  /// Every character of `text`. Errors: text that is not UTF-8, naming the byte.
  explicit Alphabet(std::string_view text);

  i64 size() const { return static_cast<i64>(characters_.size()); }
  /// The tokens of a text. Errors: a character that is not in the alphabet.
  std::vector<i32> tokens(std::string_view text) const;
  /// The character of a token.
  const std::string& character(i32 token) const;
  /// Every character once. This text gives the same alphabet again.
  std::string text() const;

 private:
  static constexpr i32 none = -1;
  std::vector<std::string> characters_;  // of each token
  std::vector<i32> numbers_;             // the token of each code point, `none` if it is not in the alphabet
};

/// Text as tokens and back. Copies share the vocabulary.
class Tokenizer {
 public:
  explicit Tokenizer(const Alphabet& alphabet);
  /// Error: a vocabulary that is not exact.
  explicit Tokenizer(const Vocabulary& vocabulary);
  explicit Tokenizer(const BytePairs& byte_pairs);
  static Tokenizer of_bytes();

  /// From now on, a line of these characters stands between documents. Errors: the tokens are characters or bytes; byte
  /// pairs without <|endoftext|>; a text that is empty or more than a line.
  void separate_at(const std::string& line);
  /// The token that stands for this line.
  std::optional<i32> separator() const { return separator_; }
  /// This token or, without a separator, the <|endoftext|> of byte pairs that have it.
  std::optional<i32> end_of_text() const;

  TokenKind kind() const { return kind_; }
  /// The vocabulary of pieces, and that of byte pairs.
  const std::optional<Vocabulary>& vocabulary() const { return vocabulary_; }
  const std::optional<BytePairs>& byte_pairs() const { return byte_pairs_; }
  /// The number of different tokens.
  i64 size() const { return static_cast<i64>(texts_.size()); }
  /// What `count` tokens are called: "characters".
  std::string_view name() const;

  /// The tokens of a text. Errors: text that is not UTF-8, unless the tokens are bytes; a character that is not in the
  /// alphabet.
  std::vector<i32> tokens(std::string_view text) const;
  /// The length of the longest prefix of `text` that can be tokenised by itself when more text follows: its tokens,
  /// followed by those of the rest, are the tokens of the whole. SentencePiece reads a line at a time, of at most 4,096
  /// bytes; byte pairs need whole words. With a separator, what may be one, or the beginning of one, is not cut.
  size_t separable_prefix(std::string_view text) const;
  /// What a token stands for: bytes, which need not be whole characters.
  const std::string& text(i32 token) const;
  /// The prompt that is used if none is given: `end_of_text`; without one a new line, or the first character of an
  /// alphabet that has no new line.
  std::vector<i32> beginning() const;

  /// As metadata of a model, and back. Errors: metadata without tokens, or with damaged ones.
  Metadata metadata() const;
  static Tokenizer of_metadata(const Metadata& metadata);
  /// Whether metadata have tokens, damaged or not.
  static bool is_in(const Metadata& metadata);

 private:
  explicit Tokenizer(TokenKind kind) : kind_(kind) {}
  // The same for a text without separators.
  std::vector<i32> tokens_of_document(std::string_view text) const;
  size_t separable_in_document(std::string_view text) const;

  TokenKind kind_;
  std::vector<std::string> texts_;  // of each token
  std::optional<Alphabet> alphabet_;
  std::optional<Vocabulary> vocabulary_;
  std::optional<BytePairs> byte_pairs_;
  std::optional<i32> separator_;
};

/// The lines of a text, each with its line feed, cut after at most 4,096 bytes: what SentencePiece reads at a time.
std::vector<std::string_view> lines_in(std::string_view text);

/// The files of a training, as absolute paths.
struct TextFiles {
  std::vector<std::string> training{};  ///< several are one text
  std::string validation{};             ///< "": the end of that text is for validation

  /// All of them.
  std::vector<std::string> all() const;
};

/// Tokens for files of text. An alphabet has all characters of all files. A vocabulary of pieces has at most
/// `vocabulary_size` tokens, the 256 bytes included; the pieces are learned from the first nine tenths of the training
/// files' bytes, or from all of these if validation has a file of its own. Of a long text, about 8 MB are taken from
/// everywhere in that part. Errors: those of `read_in_pieces`; text that is not UTF-8, naming the file and the byte,
/// unless the tokens are bytes; those of Vocabulary.
Tokenizer tokenizer_of(const TextFiles& files, TokenKind kind, i64 vocabulary_size);

/// The tokens of files.
struct FileText {
  Text text;
  bool is_utf8 = true;
};
/// With a separator, one stands between files, too, and the last line of a file is one without its line feed. Errors:
/// those of `tokenizer_of`; a character that is not in the alphabet. If the tokens take more than `most` bytes,
/// they go into a file.
FileText read_tokens(const std::vector<std::string>& paths, const Tokenizer& tokenizer,
                     size_t most = TextWriter::most_in_memory);
/// CRC32C of the bytes of all files.
u32 checksum_of(const std::vector<std::string>& paths);

/// The files `given`; if there are none, the text that comes with the program. Error: that text is missing.
std::vector<std::string> text_paths(const std::vector<std::string>& given);

struct TextData {
  Tokenizer tokenizer;
  Text training, validation;
  bool is_utf8 = true;
};
/// A text split in two: its end is for validation. Error: that part is not longer than `block`.
TextData split(const FileText& file, const Tokenizer& tokenizer, i64 block);
/// A text for training, and another one for validation. Errors: the one for validation is not longer than `block`; the
/// one for training has fewer than two blocks.
TextData joined(const FileText& training, const FileText& validation, const Tokenizer& tokenizer, i64 block);
/// A text in memory, split in two, whose tokens are its characters. Errors: those of `split`; it is not UTF-8.
TextData text_data(const std::string& text, i64 block);

/// How often a token stands in a text.
i64 count_of(const Text& text, i32 token);

/// How long a part of a text is: without its first token, which nothing predicts.
struct TextLength {
  i64 tokens = 0, characters = 0, bytes = 0;
};
TextLength length_of(const Text& text, const Tokenizer& tokenizer);
/// A loss in nats per token as "1.2345 bits per character, 1.2345 per byte". Text that is not UTF-8 has no characters.
std::string in_bits(double loss, const TextLength& length, bool is_utf8);

}  // namespace orrery
