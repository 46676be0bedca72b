// Chapter 9. A text as tokens: one for each character, cut into a part to learn from and a part to be judged by.
//
// As nanoGPT prepares its text (data/shakespeare_char/prepare.py): the alphabet is every character that occurs, sorted;
// the first nine tenths are for training, the rest for validation. Characters are those of Unicode, written as UTF-8.
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
  /// What a text begins after that has no beginning of its own: a new line, or what stands first in the alphabet.
  std::vector<i32> beginning() const;
  /// Every character once: the text that makes this alphabet again.
  std::string text() const;

 private:
  static constexpr i32 none = -1;
  std::vector<std::string> characters_;  // of each token
  std::vector<i32> numbers_;             // of each code point up to the alphabet's last, `none` where it is not in it
};

/// The tokens of a text: i32 [characters]. Errors: those of `Alphabet::tokens`.
Tensor tokens_of(const std::string& text, const Alphabet& alphabet);

struct TextData {
  Alphabet alphabet;
  Tensor training, validation;  // i32 [characters]
};
/// A text split in two. Errors: a text that is not UTF-8, or of which a part is not longer than `block`.
TextData text_data(const std::string& text, i64 block);
/// The same with an alphabet that is given. Error besides: a character that is not in it.
TextData text_data(const std::string& text, i64 block, const Alphabet& alphabet);
/// The file `given`, or where none is, "", the text that comes with the program. Error: that is not there.
std::string text_path(const std::string& given);
/// The contents of a file. Errors: what cannot be read; what is no regular file, or an empty one, or one that this
/// machine's memory cannot hold with its tokens.
std::string read_text(const std::string& path);

/// Blocks of text, and what follows each of their characters: i32 [B, T] both.
struct TextBatch {
  Tensor ids, labels;
};
/// `batch` blocks of `length` characters from anywhere in `tokens`.
TextBatch random_blocks(const Tensor& tokens, i64 batch, i64 length, Rng& rng);
/// `batch` blocks of `length` characters that follow one another, from character `begin` on.
TextBatch blocks_from(const Tensor& tokens, i64 begin, i64 batch, i64 length);

/// The blocks of a text in random order: an epoch has each once, those that follow one another from a random one of the
/// first `length` characters on, as many as fit from whichever; the next epoch has another beginning and order. Which
/// is block number n is a function of the random numbers' seed and position and of n alone.
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
  std::vector<i64> begins_;  // of this epoch's blocks
};

}  // namespace orrery
