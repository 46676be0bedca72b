// Chapter 9. GPT-2's vocabulary: pieces of bytes, joined pair by pair, from its published files vocab.json, merges.txt.
//
// "Language Models are Unsupervised Multitask Learners" (Radford et al. 2019), section 2.2. A text is first cut into
// words, each with the space before it:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// A word is a list of bytes, at first. Of all neighbours that the list of merges has, those that stand first in it are
// joined, until none is left. Every byte is a token, so any text has tokens, and they are the text again.
// In the files each byte is a printable character: itself, or a character from U+0100 on (byte 0x20 is U+0120).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace orrery {

inline constexpr size_t byte_count = 256;
/// The visible character that stands for each byte in the files: itself, or U+0100 and on.
std::array<size_t, byte_count> byte_characters();

/// Copies share their contents, which never change.
class BytePairs {
 public:
  /// Reads a published vocabulary. Errors, naming the file: JSON that is not an object of numbers 0, 1, ..., each once;
  /// a line of merges that is not two tokens with a space between them whose union is a token; a byte without a token.
  static BytePairs read(const std::string& vocab_path, const std::string& merges_path);
  /// The contents of both files.
  const std::string &vocab_json() const, &merges_txt() const;
  /// Both in one, as JSON for the metadata of a saved model; and back. Errors: those of `read`.
  std::string to_json() const;
  static BytePairs from_json(const std::string& json);

  i64 size() const;
  /// The tokens of a text. Named tokens such as <|endoftext|> are not looked for: it is text like any other. Error:
  /// text that is not UTF-8.
  std::vector<i32> ids(std::string_view text) const;
  /// The number of a token by its name in vocab.json.
  std::optional<i32> id_of(const std::string& token) const;
  /// What a token stands for: bytes, which need not be whole characters. Error: there is no such token.
  const std::string& text_of(i32 id) const;
  std::string text(std::span<const i32> ids) const;

 private:
  struct Contents;
  static BytePairs of_texts(std::string vocab, std::string merges, const std::string& vocab_name,
                            const std::string& merges_name);
  explicit BytePairs(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}
  std::shared_ptr<const Contents> contents_;
};

/// The words of a text, by the pattern above; they refer to it. Error: text that is not UTF-8.
std::vector<std::string_view> words_with_spaces(std::string_view text);
/// The length of the longest prefix of a text that ends with a word, whatever follows the text. Error: text that is not
/// UTF-8.
size_t prefix_of_whole_words(std::string_view text);

}  // namespace orrery
