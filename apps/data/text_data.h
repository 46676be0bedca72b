// Chapter 9. The text of a language model: files as tokens, split into a part for training and a part for validation.
//
// The first nine tenths are for training, the rest for validation, as in nanoGPT (data/shakespeare_char/prepare.py). Of
// a long text, only the last million tokens are for validation, so that an evaluation does not take hours.
// Several files count as one text, in their order. They are read in pieces, and their tokens need not fit into memory
// (apps/data/text.h), so files may be of any length.
#pragma once

#include <string>
#include <vector>

#include "apps/data/text.h"
#include "apps/data/tokenizer.h"

namespace orrery {

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
