// Chapter 9. Tests of BLEU, chrF and the bootstrap, and of `orrery translate score`: the numbers and the lines of
// multi-bleu.perl and sacreBLEU on the texts in tests/fixtures/translate, which make_scores.py wrote.
#include "apps/tasks/translate/score.h"

#include <doctest/doctest.h>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/data/unicode.h"
#include "apps/data/words.h"
#include "core/error.h"
#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"
#include "tests/style_source.h"

using namespace orrery;
using namespace orrery::translate;
using namespace orrery::program;
using nlohmann::json;

namespace {

std::string fixture_path(const std::string& file) {
  return std::string(ORRERY_SOURCE_DIR) + "/tests/fixtures/translate/" + file;
}

/// The lines of a text, such as "odd.system".
std::vector<std::string> fixture_text(const std::string& name) {
  return style::split_lines(contents(fixture_path(name + ".txt")));
}

/// The numbers of the tools.
const nlohmann::json& score_fixture() {
  static const nlohmann::json scores = nlohmann::json::parse(contents(fixture_path("scores.json")));
  return scores;
}

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

namespace {

std::string fixture_file(const std::string& name) { return "'" + fixture_path(name + ".txt") + "'"; }

std::string plain_arguments() {
  return "translate score " + fixture_file("plain.system") + " " + fixture_file("plain.reference");
}

void check_score_failure(const std::string& arguments, const std::string& part) {
  check_failure(quoted_program + "translate score " + arguments, part);
}

}  // namespace

TEST_CASE("the program prints the lines that multi-bleu.perl and sacreBLEU print") {
  size_t compared = 0;
  for (const nlohmann::json& corpus : score_fixture().at("corpora")) {
    const std::string system = corpus.at("system");
    if (corpus.at("begin") != 0 || corpus.at("end") != fixture_text(system).size()) continue;
    std::string arguments = "translate score " + fixture_file(system);
    for (const std::string reference : corpus.at("references")) arguments += " " + fixture_file(reference);
    if (corpus.at("lowercase")) arguments += " --lowercase";
    const Result result = run(arguments);
    CAPTURE(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.text == "multi-bleu: " + corpus.at("multi-bleu").at("line").get<std::string>() +
                             "\nsacrebleu:  " + corpus.at("sacrebleu").at("line").get<std::string>() +
                             "\nchrf:       " + corpus.at("chrf").at("line").get<std::string>() + "\n");
    ++compared;
  }
  CHECK(compared == 16);
}

TEST_CASE("--json writes the numbers in full, and the comparison") {
  const TemporaryFolder folder;
  const std::string path = folder / "scores.json";
  const Result result =
      run(plain_arguments() + " --baseline " + fixture_file("plain.baseline") + " --samples 50 --json '" + path + "'");
  CHECK(result.exit_code == 0);
  const nlohmann::json ours = nlohmann::json::parse(contents(path)), &theirs = score_fixture().at("corpora");
  CHECK(ours.at("lines") == 150);
  for (const auto& [role, at] : {std::pair<std::string, size_t>{"system", 0}, {"baseline", 2}}) {
    for (const std::string metric : {"multi-bleu", "sacrebleu", "chrf"}) {
      const std::string shown = role;
      CAPTURE(shown);
      CAPTURE(metric);
      const double score = ours.at(role).at(metric).at("score");
      CHECK(std::abs(score - theirs[at].at(metric).at("score").get<double>()) < 1e-9);
    }
    CHECK(ours.at(role).at("sacrebleu").at("length") == theirs[at].at("sacrebleu").at("length"));
  }
  CHECK(ours.at("comparison").at("samples") == 50);
  CHECK(ours.at("comparison").at("chrf").at("difference") ==
        ours.at("system").at("chrf").at("score").get<double>() -
            ours.at("baseline").at("chrf").at("score").get<double>());
}

TEST_CASE("a comparison says which system it is about, and repeats with its seed") {
  const std::string arguments = plain_arguments() + " --metric chrf --samples 100 --baseline ";
  const Result first = run(arguments + fixture_file("plain.baseline") + " --seed 5");
  CHECK(first.text == run(arguments + fixture_file("plain.baseline") + " --seed 5").text);
  CHECK(first.text != run(arguments + fixture_file("plain.baseline") + " --seed 6").text);
  CHECK(line(first.text, 0).ends_with("plain.system.txt"));
  CHECK(line(first.text, 2).ends_with("plain.baseline.txt"));
  CHECK(contains(line(first.text, 4), "plain.baseline.txt, paired bootstrap with 100 samples, seed 5:"));
  CHECK(line(first.text, 5).starts_with("chrf:       +"));
  const Result same = run(arguments + fixture_file("plain.system"));
  CHECK(contains(line(same.text, 5), "+0.00 (means "));
  CHECK(contains(line(same.text, 5), "), p = 1.0000, higher in 0.0 % of the samples"));
}

TEST_CASE("files that do not fit are one clear error") {
  const TemporaryFolder folder;
  const std::string three = written(folder / "three", "a\nb\nc\n"), two = written(folder / "two", "a\nb\n"),
                    unended = written(folder / "unended", "a\nb\nc"), empty = written(folder / "empty", ""),
                    latin = written(folder / "latin", "a\nb\nsch\xf6n\n");
  CHECK(run("translate score " + three + " " + unended).exit_code == 0);
  check_score_failure(two + " " + three, two + " ends after line 2, but " + three + " has 3 lines");
  check_score_failure(three + " " + three + " " + two, two + " ends after line 2, but " + three + " has 3 lines");
  check_score_failure(three + " " + three + " --baseline " + two, two + " ends after line 2");
  check_score_failure(three + " " + empty, empty + " is empty");
  check_score_failure(latin + " " + three, latin + " is not UTF-8: byte 4 of line 3 begins no character");
  check_score_failure(three + " " + latin, latin + " is not UTF-8");
  check_score_failure(three + " " + (folder / "missing"), folder / "missing");
  check_score_failure(three + " " + folder.path().string(), folder.path().string());
  check_score_failure(three + " " + three + " --json " + (folder / "no/such.json"), "no/such.json");
  for (const std::string& read : {unended, two, latin})
    check_score_failure(two + " " + unended + " --baseline " + latin + " --json " + read, " would write over " + read);
  CHECK(contents(unended) == "a\nb\nc");
}

TEST_CASE("empty lines and text that looks tokenised are pointed out") {
  const TemporaryFolder folder;
  std::string tokenised, plain;
  for (int i = 0; i < 100; ++i) {
    tokenised += "ein Satz .\n";
    plain += "Ein Satz.\n";
  }
  const std::string hypothesis = written(folder / "tokenised", tokenised + "\n \n"),
                    reference = written(folder / "plain", plain + "Noch\neiner\n");
  const std::string notes = errors("translate score " + hypothesis + " " + reference).text;
  CHECK(contains(notes, "note: 2 of 102 lines of " + hypothesis + " are empty\n"));
  CHECK(contains(notes, "note: 100 lines of " + hypothesis + " end in a full stop that stands alone."));
  CHECK(errors("translate score " + reference + " " + reference).text == "");
  CHECK_FALSE(
      contains(errors("translate score --metric multi-bleu " + hypothesis + " " + reference).text, "full stop"));
}
