// Chapter 9. Tests of batches: every pair once an epoch, of similar lengths, padded, and reproducible one by one.
#include "apps/data/batches.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "core/tensor_ops.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::translate;
using small::error_of;

namespace {

constexpr i64 most_batch_tokens = 60;

// Pair i consists of token 10 + i alone, at random lengths.
Corpus some_corpus(i64 pairs) {
  Corpus corpus;
  Rng rng(3);
  for (i64 i = 0; i < pairs; ++i) {
    const i32 token = static_cast<i32>(10 + i);
    corpus.source.add(std::vector<i32>(static_cast<size_t>(rng.integer(1, 12)), token));
    corpus.target.add(std::vector<i32>(static_cast<size_t>(rng.integer(1, 12)), token));
  }
  return corpus;
}

std::vector<i32> row_of(const Tensor& x, i64 row) {
  const i32* begin = x.data<i32>() + row * x.size(1);
  return {begin, begin + x.size(1)};
}

std::vector<i32> padded(std::vector<i32> tokens, i64 length) {
  tokens.resize(static_cast<size_t>(length), pad_id);
  return tokens;
}

// The tokens of a batch's rows, whose other contents are checked.
std::vector<i32> checked_rows(const TranslationBatch& batch, const Corpus& corpus) {
  std::vector<i32> tokens;
  i64 labels = 0;
  for (i64 row = 0; row < batch.source.size(0); ++row) {
    const i32 token = batch.source.data<i32>()[row * batch.source.size(1)];
    tokens.push_back(token);
    const auto source = corpus.source[token - 10], target = corpus.target[token - 10];
    std::vector<i32> expected(source.begin(), source.end());
    expected.push_back(end_id);
    CHECK(row_of(batch.source, row) == padded(expected, batch.source.size(1)));
    expected.assign(target.begin(), target.end());
    expected.insert(expected.begin(), begin_id);
    CHECK(row_of(batch.target, row) == padded(expected, batch.target.size(1)));
    expected.erase(expected.begin());
    expected.push_back(end_id);
    CHECK(row_of(batch.labels, row) == padded(expected, batch.labels.size(1)));
    labels += static_cast<i64>(expected.size());
  }
  CHECK(batch.tokens == labels);
  return tokens;
}

using Composition = std::set<std::set<i32>>;

}  // namespace

TEST_CASE("every pair comes once an epoch, in batches of at most the given number of tokens") {
  const Corpus corpus = some_corpus(150);
  TranslationBatches batches(corpus, most_batch_tokens, Rng(7));
  CHECK(batches.in_epoch() > 10);
  std::vector<Composition> compositions;
  std::vector<std::vector<i32>> orders;
  for (i64 epoch = 0; epoch < 3; ++epoch) {
    std::map<i32, int> seen;
    Composition composition;
    std::vector<i32> order;
    for (i64 i = 0; i < batches.in_epoch(); ++i) {
      const TranslationBatch batch = batches.batch(epoch * batches.in_epoch() + i);
      const std::vector<i32> rows = checked_rows(batch, corpus);
      for (const i32 token : rows) ++seen[token];
      composition.emplace(rows.begin(), rows.end());
      order.push_back(rows[0]);
      const i64 B = batch.source.size(0);
      CHECK(B * std::max(batch.source.size(1), batch.target.size(1)) <= most_batch_tokens);
    }
    CHECK(seen.size() == 150);
    for (const auto& [token, times] : seen) CHECK(times == 1);
    compositions.push_back(composition);
    orders.push_back(order);
  }
  CHECK(compositions[0] != compositions[1]);
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
}

TEST_CASE("sentences of a batch have similar lengths: less than a third is padding") {
  const Corpus corpus = some_corpus(2000);
  const TranslationBatches batches(corpus, 200, Rng(7));
  i64 area = 0;
  for (const BatchShape& shape : batches.shapes()) {
    CHECK(shape.tokens() <= 200);
    area += shape.rows * (shape.source_length + shape.target_length);
  }
  const i64 tokens = corpus.source.tokens() + corpus.target.tokens() + 2 * corpus.size();
  CHECK(area >= tokens);
  CHECK(2 * area < 3 * tokens);
}

TEST_CASE("a batch depends on its number, the corpus and the random numbers, not on what was asked before") {
  const Corpus corpus = some_corpus(90);
  TranslationBatches forward(corpus, most_batch_tokens, Rng(7)), backward(corpus, most_batch_tokens, Rng(7)),
      other(corpus, most_batch_tokens, Rng(8));
  const i64 count = 2 * forward.in_epoch();
  std::vector<TranslationBatch> in_order;
  for (i64 i = 0; i < count; ++i) in_order.push_back(forward.batch(i));
  i64 same = 0;
  for (i64 i = count - 1; i >= 0; --i) {
    const TranslationBatch& expected = in_order[static_cast<size_t>(i)];
    const TranslationBatch again = backward.batch(i);
    CHECK(same_bits(again.source, expected.source));
    CHECK(same_bits(again.target, expected.target));
    CHECK(same_bits(again.labels, expected.labels));
    const TranslationBatch another = other.batch(i);
    same += another.source.shape() == expected.source.shape() && same_bits(another.source, expected.source);
  }
  CHECK(same < count / 4);
}

TEST_CASE("without shuffling, batches go from short sentences to long ones") {
  const Corpus corpus = some_corpus(90);
  const TranslationBatches batches(corpus, most_batch_tokens, Rng(7));
  std::set<i32> seen;
  i64 length = 0;
  for (i64 i = 0; i < batches.in_epoch(); ++i) {
    const TranslationBatch batch = batches.sorted_batch(i);
    for (const i32 token : checked_rows(batch, corpus)) seen.insert(token);
    CHECK(batch.source.size(1) >= length);
    length = batch.source.size(1);
    const BatchShape& shape = batches.shapes()[static_cast<size_t>(i)];
    CHECK(batch.source.shape() == Shape{shape.rows, shape.source_length});
    CHECK(batch.target.shape() == Shape{shape.rows, shape.target_length});
  }
  CHECK(seen.size() == 90);
}

TEST_CASE("a pair that fits into no batch is an error, one that just fits is a batch") {
  Corpus corpus;
  corpus.source.add(std::vector<i32>(9, 10));
  corpus.target.add(std::vector<i32>(4, 10));
  CHECK(TranslationBatches(corpus, 10, Rng(1)).in_epoch() == 1);
  CHECK(small::contains(error_of([&] { TranslationBatches(corpus, 9, Rng(1)); }),
                        "a pair of 10 and 5 tokens does not fit into a batch of 9"));
}
