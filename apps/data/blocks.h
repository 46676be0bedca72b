// Chapter 9. Blocks of a text, from which a language model learns: at random, in a row, or each once in random order.
#pragma once

#include <vector>

#include "apps/data/text.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery {

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
