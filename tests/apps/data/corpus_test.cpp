// Chapter 9. Tests of parallel text: bad lines are left out in pairs, and nothing else loses its place.
#include "apps/data/corpus.h"

#include <doctest/doctest.h>

#include <set>

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

TEST_CASE("of equal pairs, all are held out or none") {
  LinePairs pairs = numbered_pairs(50);
  const LinePairs once = pairs;
  for (int copy = 0; copy < 3; ++copy) {
    pairs.source.insert(pairs.source.end(), once.source.begin(), once.source.end());
    pairs.target.insert(pairs.target.end(), once.target.begin(), once.target.end());
  }
  const SplitPairs held = hold_out(pairs);
  for (const std::string_view line : held.validation.source)
    CHECK(std::count(held.training.source.begin(), held.training.source.end(), line) == 0);
  CHECK(held.validation.size() % 4 == 0);
  CHECK(held.validation.size() > 0);
  LinePairs mostly_equal = numbered_pairs(3);
  for (int copy = 0; copy < 100; ++copy) {
    mostly_equal.source.push_back("x");
    mostly_equal.target.push_back("y");
  }
  CHECK(hold_out(mostly_equal).training.size() > 0);
  CHECK(hold_out(mostly_equal).validation.size() > 0);
}

TEST_CASE("too few pairs to hold one out are an error") {
  CHECK(small::contains(error_of([] { hold_out(numbered_pairs(1)); }), "the files have 1 usable pair"));
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
