// Chapter 9. Sorting, cutting and shuffling sentence pairs, and filling up batches.
#include "apps/data/corpus.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/tensor_ops.h"

namespace orrery::translate {
namespace {

std::vector<i64> first_numbers(i64 count) {
  std::vector<i64> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), i64{0});
  return numbers;
}

// With the end of each sentence. Error: a pair is longer than a batch.
std::vector<BatchesByLength::Lengths> lengths_of(const Corpus& corpus, i64 most_tokens) {
  std::vector<BatchesByLength::Lengths> lengths;
  for (i64 pair = 0; pair < corpus.size(); ++pair) {
    const auto [S, T] = lengths.emplace_back(corpus.source.length(pair) + 1, corpus.target.length(pair) + 1);
    check(std::max(S, T) <= most_tokens, "text", "a pair of ", S, " and ", T, " tokens does not fit into a batch of ",
          most_tokens);
  }
  return lengths;
}

}  // namespace

Tensor source_tensor(const std::vector<std::span<const i32>>& sentences) {
  size_t longest = 0;
  for (const auto& sentence : sentences) longest = std::max(longest, sentence.size());
  const i64 S = static_cast<i64>(longest) + 1;
  Tensor source = full({static_cast<i64>(sentences.size()), S}, pad_id, Dtype::i32);
  i32* row = source.write<i32>();
  for (const auto& sentence : sentences) {
    *std::copy(sentence.begin(), sentence.end(), row) = end_id;
    row += S;
  }
  return source;
}

BatchesByLength::BatchesByLength(std::vector<Lengths> lengths, const std::function<bool(const BatchShape&)>& fits,
                                 const Rng& numbers)
    : lengths_(std::move(lengths)), numbers_(numbers), in_order_(sorted(first_numbers(std::ssize(lengths_)))) {
  for (size_t i = 0; i < in_order_.size(); ++i) {
    const auto [S, T] = lengths_[static_cast<size_t>(in_order_[i])];
    BatchShape grown{1, S, T};
    if (!shapes_.empty()) {
      const BatchShape& last = shapes_.back();
      grown = {last.rows + 1, std::max(last.source_length, S), std::max(last.target_length, T)};
    }
    if (shapes_.empty() || !fits(grown)) {
      shapes_.push_back({1, S, T});
      begins_.push_back(static_cast<i64>(i));
    } else {
      shapes_.back() = grown;
    }
  }
}

std::vector<i64> BatchesByLength::sorted(std::vector<i64> items) const {
  const auto lengths = [&](i64 item) { return lengths_[static_cast<size_t>(item)]; };
  std::stable_sort(items.begin(), items.end(), [&](i64 a, i64 b) { return lengths(a) < lengths(b); });
  return items;
}

void BatchesByLength::shuffle(i64 epoch) {
  // One number for each item and for each batch. Twice as many are reserved, since a draw may use several.
  const i64 count = std::ssize(lengths_);
  const u64 kept_free = 2 * static_cast<u64>(count + in_epoch());
  Rng rng(numbers_.seed(), numbers_.position() + static_cast<u64>(epoch) * kept_free);
  std::vector<i64> items = sorted(rng.permutation(count));
  std::vector<i64> batches = rng.permutation(in_epoch());
  // Nothing fails from here on, so order and epoch always fit together.
  order_ = std::move(items);
  batches_ = std::move(batches);
  epoch_ = epoch;
}

std::span<const i64> BatchesByLength::part(const std::vector<i64>& order, i64 number) const {
  const size_t i = static_cast<size_t>(number);
  return std::span(order).subspan(static_cast<size_t>(begins_[i]), static_cast<size_t>(shapes_[i].rows));
}

std::span<const i64> BatchesByLength::batch(i64 number) {
  if (number / in_epoch() != epoch_) shuffle(number / in_epoch());
  return part(order_, batches_[static_cast<size_t>(number % in_epoch())]);
}

TranslationBatches::TranslationBatches(const Corpus& corpus, i64 most_tokens, const Rng& numbers)
    : corpus_(corpus),
      pairs_(
          lengths_of(corpus, most_tokens), [=](const BatchShape& shape) { return shape.tokens() <= most_tokens; },
          numbers) {}

TranslationBatch TranslationBatches::batch_of(std::span<const i64> pairs) const {
  std::vector<std::span<const i32>> sources;
  size_t longest = 0;
  i64 source_tokens = 0;
  for (const i64 pair : pairs) {
    sources.push_back(corpus_.source[pair]);
    source_tokens += std::ssize(sources.back()) + 1;
    longest = std::max(longest, corpus_.target[pair].size());
  }
  const i64 B = static_cast<i64>(pairs.size()), T = static_cast<i64>(longest) + 1;
  TranslationBatch batch{.source = source_tensor(sources),
                         .target = full({B, T}, pad_id, Dtype::i32),
                         .labels = full({B, T}, pad_id, Dtype::i32),
                         .source_tokens = source_tokens};
  i32 *target = batch.target.write<i32>(), *labels = batch.labels.write<i32>();
  for (const i64 pair : pairs) {
    const std::span<const i32> sentence = corpus_.target[pair];
    *target = begin_id;
    std::copy(sentence.begin(), sentence.end(), target + 1);
    *std::copy(sentence.begin(), sentence.end(), labels) = end_id;
    batch.tokens += static_cast<i64>(sentence.size()) + 1;
    target += T;
    labels += T;
  }
  return batch;
}

}  // namespace orrery::translate
