// Chapter 9. Tests of `orrery translate score`: its lines are those of the tools, and each mistake is one clear error.
#include <cmath>

#include "tests/apps/run_program.h"
#include "tests/apps/tasks/translate/score_fixture.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

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

TEST_CASE("--metric prints one score") {
  for (const std::string metric : {"multi-bleu", "sacrebleu", "chrf"}) {
    const Result result = run(plain_arguments() + " --metric " + metric);
    CHECK(result.text.starts_with(metric + ":"));
    CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 1);
  }
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
  const nlohmann::json& comparison = ours.at("comparison");
  CHECK(comparison.at("samples") == 50);
  for (const std::string metric : {"multi-bleu", "sacrebleu", "chrf"}) {
    const double difference = ours.at("system").at(metric).at("score").get<double>() -
                              ours.at("baseline").at(metric).at("score").get<double>();
    CHECK(comparison.at(metric).at("difference") == difference);
    const double p_value = comparison.at(metric).at("p_value");
    CHECK(p_value > 0);
    CHECK(p_value < 1);
  }
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

TEST_CASE("mistakes on the command line are named") {
  check_usage_error("translate", "translate", "train, decode, score");
  check_usage_error("translate score", "TRANSLATION", "required");
  check_usage_error("translate score a.txt", "REFERENCE", "required");
  check_usage_error("translate score a.txt b.txt --metric meteor", "meteor", "multi-bleu, sacrebleu, chrf");
  check_usage_error("translate score a.txt b.txt --samples 0", "--samples", "from 1 to");
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
