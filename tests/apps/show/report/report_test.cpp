// Chapter 9. `orrery report` as its users type it, on what trainings write.
#include "tests/apps/run_program.h"
#include "tests/apps/show/report/written_log.h"

using namespace orrery::program;
using orrery::TemporaryFolder;

namespace {

const std::string quick_training = "toy --steps 6 --evaluate-every 3 " + small_toy_options;

}  // namespace

TEST_CASE("what toy and lm write is reported, each by itself and both in one page") {
  const TemporaryFolder folder;
  const std::string toy = "'" + (folder / "toy.log") + "' ", lm = "'" + (folder / "lm.log") + "' ",
                    page = folder / "page";
  REQUIRE(run(quick_training + "--log " + toy + "--save '" + (folder / "toy.safetensors") + "'").exit_code == 0);
  const std::string text = written(folder / "text", repeated("abc ", 100));
  REQUIRE(run("lm train '" + text + "' " + quick_lm + "--log " + lm).exit_code == 0);
  const Result alone = run("report " + toy);
  CHECK(alone.exit_code == 0);
  CHECK(contains(alone.text, "<td>toy</td>"));
  CHECK(contains(alone.text, "<td>exact match</td>"));
  CHECK(contains(alone.text, "<th scope=\"row\">max-length</th><td>9</td>"));
  CHECK(errors("report " + toy).text.empty());
  const Result both = run("report " + toy + lm + "--out '" + page + "'");
  CHECK(both.exit_code == 0);
  CHECK(both.text.empty());
  CHECK(contains(orrery::contents(page), "<h1>2 trainings</h1>"));
  CHECK(contains(orrery::contents(page), "it writes: "));
  const Result all = run("report '" + folder.path().string() + "'");
  CHECK(contains(all.text, "<h1>2 trainings</h1>"));
  CHECK(contains(all.text, "toy.safetensors"));
}

TEST_CASE("a page is not written to a terminal") {
  const TemporaryFolder folder;
  const std::string log = written(folder / "log", orrery::small::log_text());
  const Result shown = shell("script -qec \"" + quoted_program + "report '" + log + "'\" /dev/null </dev/null");
  CHECK(shown.exit_code == 2);
  CHECK(contains(shown.text, "orrery: --out: must name a file for the page"));
  CHECK_FALSE(contains(shown.text, "<html"));
}

TEST_CASE("a damaged log is reported with a note, and any other file is one clear error") {
  const TemporaryFolder folder;
  const std::string log = written(folder / "log", orrery::small::log_text() + "{\"st");
  CHECK(errors("report '" + log + "'").text == log + ": the last line is cut off and left out.\n");
  const std::string report = quoted_program + "report ", text = written(folder / "text", "no log\n");
  check_failure(report + "/nowhere/log", "read /nowhere/log: No such file or directory");
  check_failure(report + "'" + text + "'", "text is not the log of a training");
  check_failure(report + "'" + written(folder / "empty", "") + "'", "empty is empty");
  check_failure(report + "'" + log + "' --out '" + log + "'", "would write over what it reports on");
  check_failure(report + "'" + folder.path().string() + "' --out '" + log + "'", "would write over what it reports on");
  check_failure(report + "'" + log + "' --out /nowhere/page", "/nowhere/page");
  check_usage_error("report", "RUN", "required");
}
