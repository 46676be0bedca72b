// Chapter 9. Reading logs, whole, resumed, killed, and of other kinds; files of trainings, told apart by what they
// hold.
#include "apps/show/report/run_log.h"

#include <doctest/doctest.h>

#include "apps/program/option_file.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/show/report/written_log.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::run_report;

namespace {

RunLog log_of(const std::string& text) {
  const TemporaryFolder folder;
  return read_run_log(written(folder / "log", text));
}

std::string step_line(int step, double loss, double seconds) {
  return "{\"step\":" + std::to_string(step) + ",\"loss\":" + std::to_string(loss) +
         ",\"rate\":0.5,\"seconds\":" + std::to_string(seconds) + "}\n";
}
std::string start_line(int after) {
  return R"({"start":"toy","after_step":)" + std::to_string(after) + R"(,"steps":9,"parameters":7})" + "\n";
}

}  // namespace

TEST_CASE("a whole log has its options, its curves, its samples and its scores") {
  const RunLog log = log_of(small::log_text());
  CHECK(log.program == "lm");
  CHECK(log.steps == 200);
  CHECK(log.parameters == 1234567);
  CHECK(log.options == Options{{"layers", "4"}, {"name", "<a>"}});
  REQUIRE(log.loss.size() == 10);
  CHECK(log.loss[0].step == 10);
  CHECK(log.loss[0].seconds == 5);
  CHECK(log.loss[0].value == 5);
  CHECK(log.rate.size() == 10);
  CHECK(log.units_per_second[9].value == 4100);
  REQUIRE(log.validation.size() == 2);
  CHECK(log.validation[0].value == 1.25);
  CHECK(log.validation[1].seconds == 50.25);
  REQUIRE(log.samples.size() == 2);
  CHECK(log.samples[1].text == "it writes: <100>");
  REQUIRE(log.scores.size() == 1);
  CHECK(log.scores[0].name == "exact match");
  CHECK(log.scores[0].value == 0.875);
  CHECK(log.left_out == 0);
  CHECK_FALSE(log.is_cut_off);
  CHECK(log.last_step() == 100);
  CHECK(log.seconds() == 50.25);
}

TEST_CASE("of steps that are made again the later ones count, and the time goes on") {
  const std::string first = start_line(0) + step_line(1, 5, 1) + step_line(2, 4, 2) + step_line(3, 3, 3),
                    again = step_line(3, 3.5, 1.5) + step_line(4, 2, 2.5);
  for (const bool told : {true, false}) {  // the log of an older program does not tell of its starts
    CAPTURE(told);
    const RunLog log = log_of(first + (told ? start_line(2) : "") + again);
    REQUIRE(log.loss.size() == 4);
    CHECK(log.loss[2].value == 3.5);
    CHECK(log.loss[2].seconds == 3.5);
    CHECK(log.loss[3].seconds == 4.5);
    CHECK(log.rate.size() == 4);
  }
}

TEST_CASE("half a line and lines of other kinds are left out and counted; a loss may be no number") {
  const RunLog cut = log_of(small::log_text() + "{\"step\":110,\"lo");
  CHECK(cut.left_out == 1);
  CHECK(cut.is_cut_off);
  CHECK(cut.loss.size() == 10);
  const RunLog odd =
      log_of(step_line(1, 2, 1) + "{\"step\":2,\"lo\n[1]\n{\"step\":3}\n{\"step\":\"x\",\"loss\":1}\n\n" +
             "{\"step\":4,\"validation\":null,\"best\":false,\"seconds\":2}\n" + step_line(5, 1, 3));
  CHECK(odd.left_out == 5);
  CHECK(odd.first_left_out == 2);
  CHECK(odd.not_finite == 1);
  CHECK(odd.validation.empty());
  CHECK(odd.loss.size() == 2);
}

TEST_CASE("of a log whose first bytes a power failure turned into zeros, the whole lines are read") {
  const RunLog log = log_of(std::string(5000, '\0') + "\"loss\":3}\n" + step_line(2, 2, 1) + step_line(3, 1, 2));
  CHECK(log.left_out == 1);
  CHECK(log.first_left_out == 1);
  CHECK(log.loss.size() == 2);
}

TEST_CASE("a file that is not a log is one clear error") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    const std::string path = written(folder / "file", text);
    return small::error_of([&] { read_run_log(path); });
  };
  const std::string path = folder / "file";
  CHECK(refusal("") == "report: " + path + " is empty");
  CHECK(refusal("some text\nand more\n") == "report: " + path + " is not the log of a training");
  CHECK(refusal("{\"step\":1,\"lo") == "report: " + path + " is not the log of a training");
  CHECK(refusal(std::string(1000, '\n')) == "report: " + path + " is not the log of a training");
  CHECK(small::contains(small::error_of([] { read_run_log("/nowhere/log"); }), "/nowhere/log"));
}

namespace {

const std::string score_text =
    R"({"lines":2,"system":{"file":"out.de","sacrebleu":{"score":41.25,"signature":"x"},"chrf":{"score":60}}})";

std::string model_file(const TemporaryFolder& folder, const std::string& name) {
  write_safetensors(folder / name, {{"a", full({2}, 1.0)}}, {{options_key, R"({"d-model":32})"}});
  return folder / name;
}

}  // namespace

TEST_CASE("logs, models and scores are told apart, and a folder holds all of them among others") {
  const TemporaryFolder folder;
  const std::string log = written(folder / "b.log", small::log_text()), model = model_file(folder, "model"),
                    scores = written(folder / "scores.json", score_text);
  written(folder / "notes.txt", "mine\n");
  written(folder / "a.log", small::log_text());
  const RunFiles files = read_run_files({log, model, scores});
  REQUIRE(files.logs.size() == 1);
  REQUIRE(files.models.size() == 1);
  CHECK(files.models[0].options == Options{{"d-model", "32"}});
  REQUIRE(files.scores.size() == 1);
  CHECK(files.scores[0].path == "out.de");
  REQUIRE(files.scores[0].scores.size() == 2);
  CHECK(files.scores[0].scores[0].name == "sacrebleu");
  CHECK(files.scores[0].scores[0].value == 41.25);
  CHECK(files.notes.empty());
  const RunFiles all = read_run_files({folder.path().string()});
  REQUIRE(all.logs.size() == 2);
  CHECK(all.logs[0].path == folder / "a.log");
  CHECK(all.models.size() == 1);
  CHECK(all.scores.size() == 1);
  CHECK(all.notes == std::vector<std::string>{"Left out of " + folder.path().string() + ": notes.txt."});
}

TEST_CASE("what is left out is noted") {
  const TemporaryFolder folder;
  const std::string cut = written(folder / "cut", small::log_text() + "{\"st"),
                    torn = written(folder / "torn", small::log_text() + "{\"st\nx\n"),
                    new_one = written(folder / "new", R"({"start":"toy","after_step":0,"steps":9,"parameters":7})"
                                                      "\n");
  CHECK(read_run_files({cut}).notes == std::vector<std::string>{cut + ": the last line is cut off and left out."});
  CHECK(read_run_files({torn}).notes ==
        std::vector<std::string>{torn + ": 2 lines are damaged and left out (line 17 is the first)."});
  CHECK(read_run_files({new_one}).notes == std::vector<std::string>{new_one + ": no step is logged yet."});
}

TEST_CASE("what cannot be reported on is one clear error") {
  const TemporaryFolder folder, empty;
  const auto refusal = [](const std::vector<std::string>& paths) {
    return small::error_of([&] { read_run_files(paths); });
  };
  const std::string text = written(folder / "text", "no log\n"), log = written(folder / "l", small::log_text());
  CHECK(refusal({text}) == "report: " + text + " is not the log of a training");
  CHECK(refusal({"/nowhere/log"}) == "read /nowhere/log: No such file or directory");
  CHECK(refusal({empty.path().string()}) ==
        "report: " + empty.path().string() + " holds no log of a training, and no model");
  CHECK(refusal(std::vector<std::string>(9, log)) == "report: draws at most 8 logs over each other, not 9");
}
