// Chapter 9. Tests of parallel text: bad lines are left out in pairs, and nothing else loses its place; batches have
// every pair once an epoch, of similar lengths, padded, and are reproducible one by one.
#include "apps/data/corpus.h"

#include <doctest/doctest.h>
#include <map>
#include <set>

#include "core/tensor_ops.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::translate;
using namespace std::string_literals;
using small::error_of;

namespace {

LinePairs pairs_of(const std::string& source, const std::string& target, Spelling spelling = Spelling::normalized) {
  const TemporaryFolder folder;
  set_contents(folder / "a", source);
  set_contents(folder / "b", target);
  return read_pairs(folder / "a", folder / "b", spelling);
}

using TextLines = std::vector<std::string_view>;

LinePairs numbered_pairs(i64 count, const std::string& target = "target ") {
  if (count == 0) return {};
  std::string sources, targets;
  for (i64 i = 0; i < count; ++i) {
    sources += "source " + std::to_string(i) + '\n';
    targets += target + std::to_string(i) + '\n';
  }
  return pairs_of(sources, targets);
}

}  // namespace

TEST_CASE("pairs of lines, whatever ends them") {
  for (const std::string text : {"a\nb b\nc\n", "a\nb b\nc", "a\r\nb b\r\nc\r\n",
                                 "\xEF\xBB\xBF"
                                 "a\nb b\nc\n"}) {
    const LinePairs pairs = pairs_of(text, "x\ny\nz\n");
    CHECK(pairs.source == TextLines{"a", "b b", "c"});
    CHECK(pairs.target == TextLines{"x", "y", "z"});
    CHECK(pairs.counts.text(9) == "3 pairs");
  }
}

TEST_CASE("a line that cannot be used is left out with its partner, and counted by its kind") {
  const LinePairs pairs = pairs_of(
      "one\n\ntwo\nthr\xff"
      "ee\nfour\nfive\n \t\nsix\nseven\n",
      "eins\nleer\n\ndrei\nvier\nf\xc3nf\n\nse\0chs\nsieben\n"s);
  CHECK(pairs.source == TextLines{"one", "four", "seven"});
  CHECK(pairs.target == TextLines{"eins", "vier", "sieben"});
  CHECK(pairs.counts.lines == 9);
  CHECK(pairs.counts.empty == 3);
  CHECK(pairs.counts.not_utf8 == 2);
  CHECK(pairs.counts.with_nul == 1);
  CHECK(pairs.counts.used() == 3);
  const Corpus corpus = corpus_of(pairs, Vocabulary::of_segmented({"one four seven eins vier sieben"}), 9);
  CHECK(corpus.size() == 3);
  CHECK(corpus.counts.text(9) ==
        "3 of 9 pairs (left out: 3 with an empty side, 2 not UTF-8 text, 1 with a NUL character)");
}

TEST_CASE("pairs are read in one spelling; those of an older training as they are") {
  const std::string source = "a\u00a0b\rc\n\u00a0\u3000\nBru\u0308cke\nx\xff\u00a0\n", target = "\tx\ny\nz\nw\n";
  const LinePairs pairs = pairs_of(source, target), older = pairs_of(source, target, Spelling::as_it_is);
  CHECK(pairs.source == TextLines{"a b c", "Br\u00fccke"});
  CHECK(pairs.target == TextLines{" x", "z"});
  CHECK(pairs.counts.text(9) == "2 of 4 pairs (left out: 1 with an empty side, 1 not UTF-8 text)");
  CHECK(older.source == TextLines{"a\u00a0b\rc", "\u00a0\u3000", "Bru\u0308cke"});
}

TEST_CASE("a vocabulary does not learn from pairs that are surely too long") {
  const std::string words = small::repeated("a ", 5), word = std::string(4 * 16 + 1, 'a');
  const LinePairs pairs =
      pairs_of("a a a a\n" + words + "\na\n" + word + "\n" + word.substr(1) + "\n", "x\nx\n" + words + "\nx\nx\n");
  CHECK(lines_to_learn(pairs, true, 4) == TextLines{"a a a a", word, word.substr(1), "x", "x", "x"});
  CHECK(lines_to_learn(pairs, false, 4) == TextLines{"a a a a", word.substr(1), "x", "x"});
  CHECK(small::contains(error_of([&] { lines_to_learn(pairs_of("a a\n", "x\n"), false, 1); }),
                        "no pair of sentences is left: all are longer than 1 tokens"));
}

TEST_CASE("files of different lengths are an error that names both") {
  const std::string error = error_of([] { pairs_of("a\nb\n", "x\ny\nz\n"); });
  CHECK(small::contains(error, "/a has 2 lines and "));
  CHECK(small::contains(error, "/b has 3;"));
  CHECK(small::contains(error_of([] { pairs_of("", "x\n"); }), "is empty"));
  CHECK(small::contains(error_of([] { read_pairs("/nowhere/a", "/nowhere/b"); }), "/nowhere/a"));
}

TEST_CASE("sentences that are too long are left out as pairs") {
  const LinePairs pairs = pairs_of("a\na a a\na\nb b\n", "x\nx\nx x x\ny y\n");
  const Vocabulary vocabulary = Vocabulary::of_segmented({"a b x y"});
  const Corpus corpus = corpus_of(pairs, vocabulary, 2);
  CHECK(corpus.size() == 2);
  CHECK(vocabulary.text(corpus.source[1]) == "b b");
  CHECK(vocabulary.text(corpus.target[1]) == "y y");
  CHECK(corpus.source.tokens() == 3);
  CHECK(corpus.counts.text(2) == "2 of 4 pairs (left out: 2 longer than 2 tokens)");
  CHECK(small::contains(error_of([&] { corpus_of(pairs_of("a a\n", "x\n"), vocabulary, 1); }),
                        "no pair of sentences is left: 0 of 1 pair (left out: 1 longer than 1 tokens)"));
}

TEST_CASE("a twentieth of the pairs is held out, chosen by its text") {
  const LinePairs pairs = numbered_pairs(400);
  const SplitPairs held = hold_out(pairs);
  CHECK(held.validation.size() == 20);
  CHECK(held.training.size() == 380);
  CHECK(held.training.counts.lines == 380);
  CHECK(held.validation.counts.text(9) == "20 pairs");
  std::set<std::string_view> all(held.training.source.begin(), held.training.source.end());
  all.insert(held.validation.source.begin(), held.validation.source.end());
  CHECK(all.size() == 400);
  for (const LinePairs* part : {&held.training, &held.validation})
    for (size_t i = 0; i < part->source.size(); ++i)
      CHECK(part->source[i].substr(7) == part->target[i].substr(7));  // still partners
  LinePairs reversed = pairs;
  std::reverse(reversed.source.begin(), reversed.source.end());
  std::reverse(reversed.target.begin(), reversed.target.end());
  const TextLines chosen = hold_out(reversed).validation.source;
  CHECK(std::set(chosen.begin(), chosen.end()) ==
        std::set(held.validation.source.begin(), held.validation.source.end()));
  CHECK(hold_out(numbered_pairs(2)).validation.size() == 1);
  CHECK(hold_out(numbered_pairs(100'000)).validation.size() == 2000);
}

TEST_CASE("too few pairs to hold one out are an error") {
  CHECK(small::contains(error_of([] { hold_out(numbered_pairs(1)); }),
                        "text: there is no pair of sentences to validate with, because the files have 1 usable pair"));
  CHECK(small::contains(error_of([] { hold_out(numbered_pairs(0)); }), "the files have 0 usable pairs"));
  LinePairs equal;
  for (int i = 0; i < 5; ++i) {
    equal.source.push_back("a");
    equal.target.push_back("x");
  }
  CHECK(small::contains(error_of([&] { hold_out(equal); }), "all sources are equal"));
}

TEST_CASE("the translations of one sentence are all held out, or none") {
  LinePairs pairs = numbered_pairs(100);
  const LinePairs others = numbered_pairs(100, "another target ");
  pairs.source.insert(pairs.source.end(), others.source.begin(), others.source.end());
  pairs.target.insert(pairs.target.end(), others.target.begin(), others.target.end());
  const SplitPairs held = hold_out(pairs);
  CHECK(held.validation.size() == 10);
  for (const std::string_view line : held.validation.source) {
    CHECK(std::count(held.training.source.begin(), held.training.source.end(), line) == 0);
    CHECK(std::count(held.validation.source.begin(), held.validation.source.end(), line) == 2);
  }
}

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
