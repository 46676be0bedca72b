// Chapter 9. Claims: every verdict, and what the sub-command prints.
#include "apps/measure/claims/claims.h"

#include <cmath>
#include <map>
#include <set>

#include "apps/program/terminal.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"
#include "tests/text.h"

using namespace orrery;
using claims::Verdict;

namespace {

// Those that train nothing, and take less than a second together.
const std::map<std::string, Verdict> quick_verdicts{{"first-gradients", Verdict::holds}};
// Those that train.
const std::map<std::string, Verdict> slow_verdicts{{"extrapolation-learned", Verdict::holds},
                                                   {"extrapolation-sinusoidal", Verdict::does_not_hold},
                                                   {"flipped-mask", Verdict::holds},
                                                   {"label-smoothing", Verdict::partly},
                                                   {"learned-positions", Verdict::partly}};

const claims::Claim& claim_called(const std::string& name) {
  for (const claims::Claim& claim : claims::all_claims())
    if (claim.name == name) return claim;
  FAIL("no claim is called " << name);
  throw 0;
}

void check_verdicts(const std::map<std::string, Verdict>& expected) {
  for (const auto& row : expected) {
    const std::string& name = row.first;
    const Verdict verdict = row.second;
    CAPTURE(name);
    const claims::Finding finding = claim_called(name).measure({});
    std::string measured;
    for (const std::string& line : finding.measured) measured += "\n" + line;
    CHECK_MESSAGE(claims::name_of(finding.verdict) == claims::name_of(verdict), measured);
    CHECK_FALSE(finding.measured.empty());
    for (const std::string& line : finding.measured) CHECK(line.size() <= table_width - 12);
  }
}

// A row whose measurement is the test's own.
claims::Measured row_with(Verdict verdict) {
  return {{.name = "name", .says = "It is so.", .source = "a paper", .holds_if = "a limit", .measure = nullptr},
          {.verdict = verdict, .measured = {"1.00", "2.00"}}};
}

}  // namespace

TEST_CASE("every claim has its verdict in one of the lists above, and all of its texts") {
  std::set<std::string> names;
  for (const claims::Claim& claim : claims::all_claims()) {
    CAPTURE(claim.name);
    CHECK(names.insert(claim.name).second);
    CHECK(quick_verdicts.count(claim.name) + slow_verdicts.count(claim.name) == 1);
    CHECK_FALSE(claim.says.empty());
    CHECK_FALSE(claim.source.empty());
    CHECK_FALSE(claim.holds_if.empty());
    CHECK(static_cast<bool>(claim.measure));
  }
  CHECK(names.size() == quick_verdicts.size() + slow_verdicts.size());
}

TEST_CASE("the claims that the book names are there; chapters 6 and 7 name some") {
  static const std::regex named("`apps/run claims ([^`]+)`");
  for (int chapter = 0; chapter <= 11; ++chapter) {
    std::set<std::string> names, names_in_chinese;
    for (const std::string& text : style::texts_of_chapter(chapter)) {
      names.merge(style::found_in(style::lines_of(text), named));
      names_in_chinese.merge(style::found_in(style::lines_of(style::in_chinese(text)), named));
    }
    CAPTURE(chapter);
    if (chapter >= 6 && chapter <= 7) CHECK_FALSE(names.empty());
    CHECK(names == names_in_chinese);
    for (const std::string& claim : names) {
      CAPTURE(claim);
      CHECK(program::run("claims --list " + claim).exit_code == 0);
    }
  }
  CHECK(program::run("claims --list no-claim").exit_code == 2);
}

TEST_CASE("verdicts of the claims that need no training") { check_verdicts(quick_verdicts); }

TEST_CASE("slow: verdicts of the claims that need trainings") { check_verdicts(slow_verdicts); }

TEST_CASE("Ctrl-C stops a measurement between two steps") {
  int calls = 0;
  const claims::Run run{[&] { return ++calls == 3; }};
  CHECK_THROWS_AS(claim_called("label-smoothing").measure(run), claims::Stopped);
  CHECK(calls == 3);
}

TEST_CASE(
    "a language repeats as often as it says, with the entropy of its next letter; or it asks for an earlier one") {
  Rng rng(1);
  const claims::Lesson lesson = claims::noisy_language(0.75, 500, 20, rng);
  CHECK(same_bits(slice(lesson.ids, 1, 1), slice(lesson.labels, 1, 0, -1)));
  i64 repeated = 0;
  for (i64 row = 0; row < 500; ++row)
    for (i64 t = 1; t < 20; ++t) repeated += lesson.labels(row, t) == lesson.ids(row, t - 1);
  CHECK(static_cast<double>(repeated) / (500 * 19) == doctest::Approx(0.75 + 0.25 / 8).epsilon(0.02));
  CHECK(claims::entropy_of_noisy_language(0) == doctest::Approx(std::log(8.0)));
  const claims::Lesson earlier = claims::earlier_letter(4, 10, rng);
  CHECK(same_bits(slice(earlier.labels, 1, 1), slice(earlier.ids, 1, 0, -1)));
  CHECK(earlier.labels(0, 0) == claims::ignored);
}

TEST_CASE("a claim with two conditions holds if both are met, and partly if one is") {
  CHECK(claims::verdict_of(true, true) == Verdict::holds);
  CHECK(claims::verdict_of(true, false) == Verdict::partly);
  CHECK(claims::verdict_of(false, true) == Verdict::partly);
  CHECK(claims::verdict_of(false, false) == Verdict::does_not_hold);
}

TEST_CASE("the last line counts the verdicts") {
  const claims::Measured holds = row_with(Verdict::holds), partly = row_with(Verdict::partly),
                         not_so = row_with(Verdict::does_not_hold);
  CHECK(claims::summary_of({holds, holds, not_so, not_so, partly}) == "5 claims: 2 hold, 2 do not, 1 partly");
  CHECK(claims::summary_of({holds}) == "1 claim: 1 holds, 0 do not, 0 partly");
  CHECK(claims::summary_of({not_so, partly}) == "2 claims: 0 hold, 1 does not, 1 partly");
  CHECK(program::contains(claims::claims_as_json({holds, partly}, 3), "\"complete\": false"));
  CHECK(program::contains(claims::claims_as_json({holds, partly}, 2), "\"complete\": true"));
}

TEST_CASE("orrery claims --list names every claim and measures none") {
  const program::Result all = program::run("claims --list");
  CHECK(all.exit_code == 0);
  for (const claims::Claim& claim : claims::all_claims()) CHECK(program::contains(all.text, claim.name + "\n"));
  CHECK_FALSE(program::contains(all.text, "verdict"));
}

TEST_CASE("orrery claims measures what is chosen, in lines of at most 100 columns, and exits 0 whatever it finds") {
  const program::Result result = program::run("claims 'first-*'");
  CHECK(result.exit_code == 0);
  CHECK(program::contains(result.text, "  verdict   holds\n"));
  CHECK(result.text.ends_with("\n1 claim: 1 holds, 0 do not, 0 partly\n"));
  std::istringstream lines(result.text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= table_width);
  program::check_usage_error("claims nonsense", "'nonsense'", "orrery claims --list");
  program::check_usage_error("claims --list --json claims.json", "--list", "--json");
  program::check_usage_error("claims --list --threads 2", "--list", "--threads");
}
