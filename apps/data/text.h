// Chapter 9. A text as tokens, in memory or in a mapped file: a text of any length takes little memory.
//
// Tokens stand one after another, each in the fewest of 1, 2 or 4 bytes that hold every token's number. So token i is
// found at once, whatever the tokens are, and a batch costs as much in a text of ten gigabytes as in a small one. Up to
// 16 MB of them stay in memory. More go into a file without a name (ScratchFile in core/files/file.h), which is mapped:
// the system keeps in memory what was read last. nanoGPT's train.bin is the same, except that it has a name. The price
// is room on the disk: for characters of at most 256 kinds and for bytes at most as much as the text takes, for pieces
// of words about half.
//
// Blocks of a text, from which a language model learns: at random, in a row, or each once in random order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/files/file.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery {

/// Copies share the tokens, which never change.
class Text {
 public:
  Text() = default;
  i64 count() const { return end_ - begin_; }
  /// Tokens number `first`, `first` + 1, ... Error: the text has fewer.
  void copy(i64 first, std::span<i32> to) const;
  /// Tokens from `begin` to before `end`.
  Text part(i64 begin, i64 end) const;

 private:
  friend class TextWriter;
  std::shared_ptr<const void> owner_;
  const std::byte* tokens_ = nullptr;
  size_t bytes_of_token_ = 1;
  i64 begin_ = 0, end_ = 0;
};

/// Collects the tokens of a text.
class TextWriter {
 public:
  static constexpr size_t most_in_memory = size_t{1} << 24;

  /// Tokens from 0 to before `kinds`. If they take more than `most` bytes, they go into a file.
  explicit TextWriter(i64 kinds, size_t most = most_in_memory);
  /// Error: a token out of range; those of the file.
  void add(std::span<const i32> tokens);
  /// The text of all tokens that were added. Call it once, at the end.
  Text finish();

 private:
  const i64 kinds_;
  const size_t bytes_of_token_, most_;
  std::vector<std::byte> waiting_;
  std::shared_ptr<ScratchFile> file_;
  i64 count_ = 0;
};

/// A short text, in memory.
Text short_text(std::span<const i32> tokens, i64 kinds);

/// Blocks of text, and as labels the tokens that follow: both i32 [B, T].
struct TextBatch {
  Tensor ids, labels;
};
/// `batch` blocks of `length` tokens from anywhere in the text. Error: a text that is not longer than a block.
TextBatch random_blocks(const Text& text, i64 batch, i64 length, Rng& rng);
/// `batch` blocks of `length` tokens, the first from token `begin` on, each other one `stride` tokens after the one
/// before. Error: a block, or the label of its last token, is beyond the end of the text.
TextBatch blocks_from(const Text& text, i64 begin, i64 batch, i64 length, i64 stride);

/// The blocks of a text in random order. In each epoch the text is cut into consecutive blocks, beginning at a random
/// one of its first `length` tokens, and every block comes once. The next epoch has another beginning and another
/// order. Block number n depends only on n and on the seed and position of the random numbers.
/// The order is a list of the blocks. Of more than `most_listed` blocks the list would not fit into memory; their order
/// is computed, block by block, by a keyed permutation.
class ShuffledBlocks {
 public:
  /// Error: a text that is shorter than two blocks.
  ShuffledBlocks(const Text& text, i64 length, const Rng& numbers, i64 most_listed = i64{1} << 20);
  /// Blocks number `first_block`, `first_block` + 1, ..., counted from 0.
  TextBatch batch(i64 first_block, i64 count);
  i64 in_epoch() const { return in_epoch_; }

 private:
  void shuffle(i64 epoch);
  i64 block_at(i64 place) const;

  Text text_;
  i64 length_, in_epoch_, most_listed_, epoch_ = -1, beginning_ = 0;
  Rng numbers_;
  std::vector<i64> order_;  // of this epoch's blocks
  u64 key_ = 0;             // of the permutation
};

/// Element `place` of a permutation of 0, ..., count - 1 that `key` chooses.
i64 permuted(i64 place, i64 count, u64 key);

}  // namespace orrery
