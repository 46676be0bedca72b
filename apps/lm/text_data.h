// Chapter 9. A text as tokens, one for each character, split into a part for training and a part for validation.
//
// The text is prepared as in nanoGPT (data/shakespeare_char/prepare.py): the alphabet consists of all characters that
// occur, sorted. The first nine tenths are for training, the rest for validation. The text is Unicode in UTF-8.
// Serves: nn/models/gpt.h
#pragma once

#include <string>
#include <vector>

#include "core/random.h"
#include "core/tensor.h"

namespace orrery {

/// Characters and their numbers, in the order of their code points.
class Alphabet {
 public:
  /// Every character of `text`. Errors: text that is not UTF-8, naming the byte.
  explicit Alphabet(const std::string& text);

  i64 size() const { return static_cast<i64>(characters_.size()); }
  /// The tokens of a text. Errors: a character that is not in the alphabet.
  std::vector<i32> tokens(const std::string& text) const;
  /// The character of a token.
  const std::string& character(i32 token) const;
  /// The prompt of a text without one: a new line, or the first character of the alphabet if it has no new line.
  std::vector<i32> beginning() const;
  /// Every character once. This text gives the same alphabet again.
  std::string text() const;

 private:
  static constexpr i32 none = -1;
  std::vector<std::string> characters_;  // of each token
  std::vector<i32> numbers_;             // the token of each code point, `none` if it is not in the alphabet
};

/// The tokens of a text: i32 [characters]. Errors: those of `Alphabet::tokens`.
Tensor tokens_of(const std::string& text, const Alphabet& alphabet);

struct TextData {
  Alphabet alphabet;
  Tensor training, validation;  // i32 [characters]
};
/// A text split in two. Errors: the text is not UTF-8; a part is not longer than `block`.
TextData text_data(const std::string& text, i64 block);
/// The same with a given alphabet. Also an error: a character that is not in it.
TextData text_data(const std::string& text, i64 block, const Alphabet& alphabet);
/// The file `given`; if that is "", the text that comes with the program. Error: that text is missing.
std::string text_path(const std::string& given);
/// The contents of a file. Errors: a file that cannot be read, is not a regular file, or is empty; a file that does not
/// fit into this machine's memory together with its tokens.
std::string read_text(const std::string& path);

/// Blocks of text, and as labels the characters that follow: both i32 [B, T].
struct TextBatch {
  Tensor ids, labels;
};
/// `batch` blocks of `length` characters from anywhere in `tokens`.
TextBatch random_blocks(const Tensor& tokens, i64 batch, i64 length, Rng& rng);
/// `batch` blocks of `length` characters that follow one another, from character `begin` on.
TextBatch blocks_from(const Tensor& tokens, i64 begin, i64 batch, i64 length);

/// The blocks of a text in random order. In each epoch the text is cut into consecutive blocks, beginning at a random
/// one of its first `length` characters, and every block comes once. The next epoch has another beginning and another
/// order. Block number n depends only on n and on the seed and position of the random numbers.
class ShuffledBlocks {
 public:
  /// Error: a text that is shorter than two blocks.
  ShuffledBlocks(const Tensor& tokens, i64 length, const Rng& numbers);
  /// Blocks number `first_block`, `first_block` + 1, ..., counted from 0.
  TextBatch batch(i64 first_block, i64 count);
  i64 in_epoch() const { return in_epoch_; }

 private:
  void shuffle(i64 epoch);

  Tensor tokens_;
  i64 length_, in_epoch_, epoch_ = -1;
  Rng numbers_;
  std::vector<i64> begins_;  // where the blocks of this epoch begin
};

}  // namespace orrery
