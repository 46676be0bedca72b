// Chapter 9. Batches of sentence pairs: as many as fit into a number of tokens, of similar lengths, in random order.
//
// Paper, section 5.1: "Sentence pairs were batched together by approximate sequence length. Each training batch
// contained a set of sentence pairs containing approximately 25000 source tokens and 25000 target tokens."
// A batch is a rectangle, filled up with padding, so sentences of the same length waste least. In each epoch
//   1. the pairs are put into a random order, then sorted by source length and among these by target length; pairs of
//      equal lengths stay in random order, so batches are never composed the same way twice,
//   2. this order is cut into batches,
//   3. the batches are put into a random order.
// Where the cuts are depends on the lengths alone, so every epoch has the same number of batches.
// Shapes, for rows "source end" and "begin target end":
//   source [B, S]   source end   pad...
//   target [B, T]   begin target pad...      what the decoder reads
//   labels [B, T]   target end   pad...      what it must predict
#pragma once

#include "apps/data/corpus.h"
#include "core/random.h"
#include "core/tensor.h"

namespace orrery::translate {

struct TranslationBatch {
  Tensor source, target, labels;  // i32
  i64 source_tokens = 0;          ///< those of the source that are not padding
  i64 tokens = 0;                 ///< the same of the labels
};

/// Sentences as the encoder reads them: i32 [B, S], each with its end, then padding.
Tensor source_tensor(const std::vector<std::span<const i32>>& sentences);

/// The size of a batch.
struct BatchShape {
  i64 rows = 0, source_length = 0, target_length = 0;

  /// What the limit of tokens counts: the larger one of the two rectangles.
  i64 tokens() const { return rows * std::max(source_length, target_length); }
};

class TranslationBatches {
 public:
  /// Batches of at most `most_tokens` tokens, padding included. `numbers` decides the order of every epoch. The corpus
  /// must outlive the batches. Error: a pair that is longer than a batch.
  TranslationBatches(const Corpus& corpus, i64 most_tokens, const Rng& numbers);
  TranslationBatches(const Corpus&&, i64, const Rng&) = delete;  // it would not outlive them

  i64 in_epoch() const { return static_cast<i64>(shapes_.size()); }
  /// The sizes of the batches of an epoch, before they are put into random order.
  const std::vector<BatchShape>& shapes() const { return shapes_; }
  /// Batch number `number`, counted from 0 over all epochs. It depends on nothing else.
  TranslationBatch batch(i64 number);
  /// The batches of the corpus in the order of their lengths, which is not random.
  TranslationBatch sorted_batch(i64 number) const;

 private:
  std::vector<i64> sorted(std::vector<i64> pairs) const;
  TranslationBatch batch_of(std::span<const i64> pairs) const;
  std::span<const i64> part(const std::vector<i64>& order, i64 number) const;
  void shuffle(i64 epoch);

  const Corpus& corpus_;
  Rng numbers_;
  std::vector<i64> in_order_;       // the pairs by length, and among equal lengths by their place in the corpus
  std::vector<BatchShape> shapes_;  // of the batches that this order is cut into
  std::vector<i64> begins_;         // where each begins in the order
  i64 epoch_ = -1;
  std::vector<i64> order_;    // the pairs of this epoch
  std::vector<i64> batches_;  // the numbers of this epoch's batches
};

}  // namespace orrery::translate
