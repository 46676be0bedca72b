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

#include <functional>
#include <utility>

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

/// Which pairs, or texts, of which only the source has a length, stand together in a batch.
class BatchesByLength {
 public:
  using Lengths = std::pair<i64, i64>;  // of source and target
  /// Batches that grow as long as `fits` says so. `numbers` decides the order of every epoch.
  BatchesByLength(std::vector<Lengths> lengths, const std::function<bool(const BatchShape&)>& fits, const Rng& numbers);

  i64 in_epoch() const { return static_cast<i64>(shapes_.size()); }
  /// The sizes of the batches of an epoch, before they are put into random order.
  const std::vector<BatchShape>& shapes() const { return shapes_; }
  /// The items of batch number `number`, counted from 0 over all epochs. They depend on nothing else.
  std::span<const i64> batch(i64 number);
  /// Those of the batches in the order of their lengths, which is not random.
  std::span<const i64> sorted_batch(i64 number) const { return part(in_order_, number); }

 private:
  std::vector<i64> sorted(std::vector<i64> items) const;
  std::span<const i64> part(const std::vector<i64>& order, i64 number) const;
  void shuffle(i64 epoch);

  std::vector<Lengths> lengths_;
  Rng numbers_;
  std::vector<i64> in_order_;       // the items by length, and among equal lengths in their own order
  std::vector<BatchShape> shapes_;  // of the batches that this order is cut into
  std::vector<i64> begins_;         // where each begins in the order
  i64 epoch_ = -1;
  std::vector<i64> order_;    // the items of this epoch
  std::vector<i64> batches_;  // the numbers of this epoch's batches
};

class TranslationBatches {
 public:
  /// Batches of at most `most_tokens` tokens, padding included. `numbers` decides the order of every epoch. The corpus
  /// must outlive the batches. Error: a pair that is longer than a batch.
  TranslationBatches(const Corpus& corpus, i64 most_tokens, const Rng& numbers);
  TranslationBatches(const Corpus&&, i64, const Rng&) = delete;  // it would not outlive them

  i64 in_epoch() const { return pairs_.in_epoch(); }
  const std::vector<BatchShape>& shapes() const { return pairs_.shapes(); }
  /// As those of BatchesByLength.
  TranslationBatch batch(i64 number) { return batch_of(pairs_.batch(number)); }
  TranslationBatch sorted_batch(i64 number) const { return batch_of(pairs_.sorted_batch(number)); }

 private:
  TranslationBatch batch_of(std::span<const i64> pairs) const;

  const Corpus& corpus_;
  BatchesByLength pairs_;
};

}  // namespace orrery::translate
