// Chapter 9. Tests of BLEU, chrF and the bootstrap: the numbers of multi-bleu.perl and sacreBLEU on the texts in
// tests/fixtures/translate, which make_scores.py wrote.
#include "apps/tasks/translate/score.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/data/unicode.h"
#include "apps/data/words.h"
#include "apps/tasks/translate/bootstrap.h"
#include "core/error.h"
#include "tests/apps/tasks/translate/score_fixture.h"

using namespace orrery;
using namespace orrery::translate;
using nlohmann::json;

namespace {

constexpr double tolerance = 1e-9;

bool agree(double ours, double theirs) { return std::abs(ours - theirs) < tolerance; }

Sentences part_of(const Sentences& lines, const json& from) {
  return {lines.begin() + from.at("begin").get<i64>(), lines.begin() + from.at("end").get<i64>()};
}

Bleu bleu_of(BleuKind kind, const Sentences& translation, const std::vector<Sentences>& references, bool lowercase) {
  return bleu(kind, sum(bleu_counts(kind, translation, references, lowercase)));
}

void check_bleu(const Bleu& ours, const json& theirs) {
  CHECK(agree(ours.score, theirs.at("score")));
  for (size_t i = 0; i < most_words; ++i) CHECK(agree(ours.precisions[i], theirs.at("precisions")[i]));
  CHECK(agree(ours.brevity_penalty, theirs.at("brevity_penalty")));
  CHECK(ours.length == theirs.at("length"));
  CHECK(ours.reference_length == theirs.at("reference_length"));
}

// A line as a corpus of its own: [score, p_1, ..., p_4, length, length of the reference]. multi-bleu.perl fails if
// the translation is empty, or the reference; null stands for that.
void check_line(const Bleu& ours, const json& theirs) {
  if (theirs.is_null()) {
    CHECK((ours.length == 0 || ours.reference_length == 0));
    CHECK(ours.score == 0);
    return;
  }
  CHECK(agree(ours.score, theirs[0]));
  for (size_t i = 0; i < most_words; ++i) CHECK(agree(ours.precisions[i], theirs[1 + i]));
  CHECK(ours.length == theirs[5]);
  CHECK(ours.reference_length == theirs[6]);
}

void check_spread(const Spread& ours, const json& theirs) {
  CHECK(agree(ours.mean, theirs.at("mean")));
  CHECK(agree(ours.half_width, theirs.at("half_width")));
}

void check_comparison(const Comparison& ours, const json& theirs) {
  CHECK(agree(ours.difference, theirs.at("difference")));
  CHECK(agree(ours.p_value, theirs.at("p_value")));
  CHECK(agree(ours.higher, theirs.at("higher")));
  check_spread(ours.system, theirs.at("system"));
  check_spread(ours.baseline, theirs.at("baseline"));
}

Paired paired_bleu(const Sentences& system, const Sentences& baseline, const std::vector<Sentences>& references) {
  const auto score_of = [&](const Sentences& lines) -> ScoreOfLines {
    return [counts = bleu_counts(BleuKind::sacrebleu, lines, references)](std::span<const i64> numbers) {
      return bleu(BleuKind::sacrebleu, sum(counts, numbers)).score;
    };
  };
  return {score_of(system), score_of(baseline)};
}

Paired paired_chrf(const Sentences& system, const Sentences& baseline, const std::vector<Sentences>& references) {
  const auto score_of = [&](const Sentences& lines) -> ScoreOfLines {
    return
        [counts = chrf_counts(lines, references)](std::span<const i64> numbers) { return chrf(sum(counts, numbers)); };
  };
  return {score_of(system), score_of(baseline)};
}

}  // namespace

TEST_CASE("BLEU and chrF of a corpus are those of multi-bleu.perl and sacreBLEU") {
  const json& corpora = score_fixture().at("corpora");
  CHECK(corpora.size() == 26);
  for (const json& corpus : corpora) {
    CAPTURE(corpus.at("system"));
    CAPTURE(corpus.at("begin"));
    CAPTURE(corpus.at("references").size());
    const bool small = corpus.at("lowercase");
    CAPTURE(small);
    const Sentences translation = part_of(fixture_text(corpus.at("system")), corpus);
    std::vector<Sentences> references;
    for (const std::string name : corpus.at("references")) references.push_back(part_of(fixture_text(name), corpus));
    const Bleu multi_bleu = bleu_of(BleuKind::multi_bleu, translation, references, small);
    if (const json& theirs = corpus.at("multi-bleu"); !theirs.is_null())
      check_bleu(multi_bleu, theirs);
    else
      CHECK(multi_bleu.length == 0);
    check_bleu(bleu_of(BleuKind::sacrebleu, translation, references, small), corpus.at("sacrebleu"));
    CHECK(agree(chrf(sum(chrf_counts(translation, references, small))), corpus.at("chrf").at("score")));
  }
}

TEST_CASE("BLEU and chrF of each odd line by itself are the tools', with one reference and with three") {
  for (const json& rows : score_fixture().at("single_lines")) {
    const Sentences translation = fixture_text(rows.at("system"));
    std::vector<Sentences> references;
    for (const std::string name : rows.at("references")) references.push_back(fixture_text(name));
    CAPTURE(references.size());
    CHECK(translation.size() == 102);
    const auto multi_bleu = bleu_counts(BleuKind::multi_bleu, translation, references),
               sacrebleu = bleu_counts(BleuKind::sacrebleu, translation, references);
    const auto characters = chrf_counts(translation, references);
    for (size_t i = 0; i < translation.size(); ++i) {
      CAPTURE(translation[i]);
      check_line(bleu(BleuKind::multi_bleu, multi_bleu[i]), rows.at("multi-bleu")[i]);
      check_line(bleu(BleuKind::sacrebleu, sacrebleu[i]), rows.at("sacrebleu")[i]);
      CHECK(agree(chrf(characters[i]), rows.at("chrf")[i]));
    }
  }
}

TEST_CASE("the words of tokeniser 13a are sacreBLEU's") {
  CHECK(words_13a("Er zahlte 1.000,50 &quot;Euro&quot;.") == "Er zahlte 1.000,50 \" Euro \" .");
  CHECK(words_13a(std::string("a\0b", 3)) == std::string("a\0b", 3));
  size_t lines = 0;
  for (const auto& [name, theirs] : score_fixture().at("words_13a").items()) {
    const Sentences text = fixture_text(name);
    REQUIRE(text.size() == theirs.size());
    for (size_t i = 0; i < text.size(); ++i, ++lines) {
      CAPTURE(text[i]);
      CHECK(words_13a(text[i]) == theirs[i].get<std::string>());
    }
  }
  CHECK(lines == 204);
}

TEST_CASE("multi-bleu's words are separated by ASCII's whitespace alone, chrF leaves out all whitespace") {
  CHECK(words_of(" a\t\tb\u00a0c \v\f d\r") == "a b\u00a0c d");
  CHECK(words_of(" \t ") == "");
  CHECK(without_whitespace(" a\tb\u00a0c\u3000d\x1c\x1f\u0085") == "abcd");
}

TEST_CASE("lower case is Python's; for multi-bleu, Perl's") {
  for (const auto& [name, theirs] : score_fixture().at("lowercase").items()) {
    const Sentences text = fixture_text(name);
    REQUIRE(text.size() == theirs.size());
    for (size_t i = 0; i < text.size(); ++i) CHECK(lowercase(text[i]) == theirs[i].get<std::string>());
  }
  CHECK(ascii_lowercase("AZ[ÄÖ@") == "az[ÄÖ@");
}

// The first example of section 2.1 of the paper.
TEST_CASE("a word counts at most as often as a reference has it") {
  const std::vector<Sentences> references{{"the cat is on the mat"}, {"there is a cat on the mat"}};
  const BleuCounts counts = bleu_counts(BleuKind::multi_bleu, {"the the the the the the the"}, references).front();
  CHECK(counts.matches[0] == 2);
  CHECK(counts.total[0] == 7);
  CHECK(counts.reference_length == 7);
  CHECK(bleu_counts(BleuKind::multi_bleu, {"the cat sat"}, references).front().reference_length == 6);
}

TEST_CASE("of references that are equally close in length the shorter one counts") {
  for (const bool turned : {false, true}) {
    std::vector<Sentences> references{{"a b c d e f"}, {"a b"}};
    if (turned) std::swap(references[0], references[1]);
    CHECK(bleu_counts(BleuKind::multi_bleu, {"a b c d"}, references).front().reference_length == 2);
    CHECK(bleu_counts(BleuKind::sacrebleu, {"a b c d e"}, references).front().reference_length == 6);
  }
}

TEST_CASE("texts that do not fit are errors") {
  CHECK_THROWS_WITH_AS(bleu_counts(BleuKind::multi_bleu, {"a", "b"}, {{"a"}}),
                       "score: a translation of 2 lines and a reference of 1", Error);
  CHECK_THROWS_WITH_AS(chrf_counts({"a"}, {}), "score: needs a reference", Error);
  for (const std::string broken : {"ab\xff", "\xc3", "\xed\xa0\x80", "\xc0\x80"}) {
    CHECK_THROWS_AS(bleu_counts(BleuKind::multi_bleu, {broken}, {{"a"}}), Error);
    CHECK_THROWS_AS(bleu_counts(BleuKind::sacrebleu, {"a"}, {{broken}}, true), Error);
    CHECK_THROWS_AS(chrf_counts({broken}, {{"a"}}), Error);
  }
}

TEST_CASE("on sacreBLEU's samples the paired bootstrap gives sacreBLEU's p-values, means and intervals") {
  const json& theirs = score_fixture().at("bootstrap");
  const auto lines = theirs.at("lines").get<i64>();
  const auto first_lines = [&](const std::string& name) {
    const Sentences text = fixture_text(name);
    return Sentences{text.begin(), text.begin() + lines};
  };
  const Sentences system = first_lines("plain.system"), baseline = first_lines("plain.baseline");
  const std::vector<Sentences> references{first_lines("plain.reference")};
  const auto samples = theirs.at("samples").get<std::vector<std::vector<i64>>>();
  size_t next = 0;
  const auto comparisons =
      paired_bootstrap({paired_bleu(system, baseline, references), paired_chrf(system, baseline, references)}, lines,
                       static_cast<i64>(samples.size()), [&](std::span<i64> sample) {
                         REQUIRE(samples[next].size() == sample.size());
                         std::copy(samples[next].begin(), samples[next].end(), sample.begin());
                         ++next;
                       });
  CHECK(next == 100);
  REQUIRE(comparisons.size() == 2);
  check_comparison(comparisons[0], theirs.at("sacrebleu"));
  check_comparison(comparisons[1], theirs.at("chrf"));
  CHECK(comparisons[0].p_value != comparisons[1].p_value);
}

TEST_CASE("the samples depend on the seed alone, and on a sure difference not at all") {
  const Sentences system = fixture_text("plain.system"), baseline = fixture_text("plain.baseline"),
                  reference = fixture_text("plain.reference");
  const auto compare = [&](const Sentences& a, const Sentences& b, u64 seed) {
    return paired_bootstrap({paired_bleu(a, b, {reference})}, static_cast<i64>(a.size()), 200, seed).front();
  };
  const Comparison first = compare(system, baseline, 1), again = compare(system, baseline, 1),
                   turned = compare(baseline, system, 1), other = compare(system, baseline, 2);
  CHECK(first.system.mean == again.system.mean);
  CHECK(first.p_value == again.p_value);
  CHECK(first.system.mean != other.system.mean);
  CHECK(first.system.half_width > 0);
  CHECK(turned.difference == -first.difference);
  CHECK(turned.p_value == first.p_value);
  CHECK(turned.higher == 1 - first.higher);
  const Comparison perfect = compare(reference, Sentences(reference.size(), "nichts"), 1);
  CHECK(perfect.higher == 1);
  CHECK(perfect.p_value == 1.0 / 201);
  const Comparison same = compare(system, system, 1);
  CHECK(same.higher == 0);
  CHECK(same.p_value == 1);
  CHECK_THROWS_AS(compare({}, {}, 1), Error);
}
