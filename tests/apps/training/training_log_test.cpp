// Chapter 9. Tests of the log of a training: its lines, and what becomes of a log that is there already.
#include "apps/training/training_log.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/program/option_file.h"
#include "tests/apps/training/line_task.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using small::LineRun;
using Earlier = TrainingLog::Earlier;

namespace {

std::vector<nlohmann::json> lines_of_log(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(contents(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("the log has steps and evaluations as JSON lines, and a resumed training appends to it") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  LineRun run("");
  run.training.task.validation = {0.5, 0.75, NAN, 0.25};
  run.go({}, path);
  std::vector<nlohmann::json> lines = lines_of_log(path), evaluations;
  REQUIRE(lines.size() >= 6);
  CHECK(lines[0] ==
        nlohmann::json{{"start", "line"}, {"after_step", 0}, {"steps", 12}, {"parameters", 2}, {"unit", "points"}});
  lines.erase(lines.begin());
  CHECK(lines[0]["step"] == 1);
  CHECK(lines[0]["loss"] == run.training.trainer.losses()[0]);
  CHECK(lines[0]["rate"] == 0.05);
  for (const nlohmann::json& line : lines) {
    CHECK(line["seconds"] >= 0);
    if (line.contains("validation")) evaluations.push_back(line);
  }
  REQUIRE(evaluations.size() == 4);
  CHECK(evaluations[1]["step"] == 6);
  CHECK(evaluations[1]["validation"] == 0.75);
  CHECK(evaluations[1]["best"] == false);
  CHECK(evaluations[2]["validation"].is_null());
  CHECK(evaluations[3]["best"] == true);
  LineRun more(""), anew("");
  more.go({}, path, Earlier::continued);
  CHECK(lines_of_log(path).size() >= lines.size() + 7);
  CHECK(lines_of_log(path)[1] == lines[0]);
  anew.training.task.validation = {1, 2, 3, 4};
  anew.go({}, path, Earlier::replaced);
  const std::vector<nlohmann::json> again = lines_of_log(path);
  const auto judged = std::find_if(again.begin(), again.end(), [](const auto& l) { return l.contains("validation"); });
  REQUIRE(judged - again.begin() >= 2);
  CHECK((*(judged - 1))["step"] == 3);  // before an evaluation, the step that led to it
  CHECK((*judged)["validation"] == 1);
}

TEST_CASE("the log begins with the options, has samples and scores, and a resumed training begins a new line") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  LineRun run("");
  run.parts.origin[options_key] = R"({"rate":0.05,"name":"line"})";
  run.go({.after_evaluation = [&] { return run.training.trainer.steps_done() == 6 ? "at\xFF six" : ""; }}, path);
  std::vector<nlohmann::json> lines = lines_of_log(path), samples;
  CHECK(lines[0]["options"] == nlohmann::json{{"rate", 0.05}, {"name", "line"}});
  for (const nlohmann::json& line : lines)
    if (line.contains("sample")) samples.push_back(line);
  REQUIRE(samples.size() == 1);
  CHECK(samples[0] == nlohmann::json{{"step", 6}, {"sample", "at\xEF\xBF\xBD six"}});
  set_contents(path, contents(path) + "{\"step\":1");
  TrainingLog log(path, Earlier::continued);
  log.start(run.training.trainer, "");
  log.score(12, "exact match", 0.5);
  CHECK(contents(path).ends_with(
      "\n{\"step\":1\n{\"start\":\"line\",\"after_step\":12,\"steps\":12,\"parameters\":2,\"unit\":\"points\"}\n"
      "{\"step\":12,\"score\":\"exact match\",\"value\":0.5}\n"));
}

TEST_CASE("a log is replaced only by wish, and never anything else") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  for (const std::string allowed : {"", "{\"start\":\"toy\"}\n", "{\"step\":1,\"loss\":2}\n"}) {
    set_contents(path, allowed);
    CHECK(TrainingLog(path, Earlier::replaced).used());
    if (allowed.empty()) {
      CHECK(TrainingLog(path, Earlier::kept).used());
    } else {
      CHECK(small::error_of([&] { TrainingLog(path, Earlier::kept); }) ==
            "log: " + path + " already holds a log: --overwrite replaces it, another name keeps both");
    }
    CHECK(contents(path) == allowed);
  }
  const std::string zeros(5000, '\0');
  for (const std::string& other : std::vector<std::string>{"{\"steps\": 3}", "{", "a text\n", zeros + "a text\n",
                                                           zeros + "a\ntext\n", zeros + "a", "a" + zeros}) {
    CAPTURE(other.size());
    set_contents(path, other);
    CHECK(small::error_of([&] { TrainingLog(path, Earlier::replaced); }) ==
          "log: " + path + " is not a training log; name another file, or remove it");
    CHECK(contents(path) == other);
  }
}

TEST_CASE("a log whose first bytes a power failure turned into zeros is gone on with, and replaced by wish") {
  const TemporaryFolder folder;
  const std::string path = folder / "log", zeros(100'000, '\0');
  LineRun run("");
  const std::string step = "{\"step\":1,\"loss\":2}\n";
  for (const std::string& left :
       {zeros, zeros + step, zeros + "\"loss\":2}\n" + step, zeros + "\n{\"start\":\"toy\"}\n{\"step\":1,\"lo"}) {
    CAPTURE(left.size());
    for (const Earlier earlier : {Earlier::continued, Earlier::replaced}) {
      set_contents(path, left);
      CHECK(small::error_of([&] { TrainingLog(path, Earlier::kept); }).ends_with("another name keeps both"));
      TrainingLog log(path, earlier);
      log.start(run.training.trainer, "");
      log.score(0, "exact match", 0.5);
      log.end();
      const std::string begun =
                            "{\"start\":\"line\",\"after_step\":0,\"steps\":12,\"parameters\":2,\"unit\":\"points\"}\n",
                        line = "{\"step\":0,\"score\":\"exact match\",\"value\":0.5}\n",
                        kept = earlier == Earlier::continued ? left + (left.ends_with('\n') ? "" : "\n") : "";
      CHECK(contents(path) == kept + begun + line);
    }
  }
}

TEST_CASE("the log has at most ten steps a second, whose speed counts all tokens since the last") {
  const TemporaryFolder folder;
  {
    double now = 0;
    TrainingLog log(folder / "log", Earlier::kept, [&] { return now; });
    const auto make_step = [&](i64 step, double seconds, double loss) {
      log.begin_step();
      now += seconds;
      log.step(step, {.loss = loss, .items = 100});
    };
    make_step(1, 0.02, 2);
    make_step(2, 0.05, 2);
    make_step(3, 0.075, 1.5);
    make_step(4, 0.05, 1.25);
    log.write_left_out();
    log.write_left_out();
  }
  const std::vector<nlohmann::json> lines = lines_of_log(folder / "log");
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["tokens_per_s"] == 5000);
  CHECK(lines[1]["step"] == 3);
  CHECK(lines[1]["loss"] == 1.5);
  CHECK(lines[1]["tokens_per_s"] == 1600);
  CHECK(lines[2]["step"] == 4);
  CHECK(lines[2]["tokens_per_s"] == 2000);
}

TEST_CASE("the latest step that was left out comes before a plan that has changed") {
  const TemporaryFolder folder;
  const LineRun run("");
  {
    TrainingLog log(folder / "log", Earlier::kept, [] { return 0.0; });
    for (const i64 step : {1, 2, 3}) log.step(step, {.loss = 2});
    log.plan(run.training.trainer, "");
  }
  const std::vector<nlohmann::json> lines = lines_of_log(folder / "log");
  REQUIRE(lines.size() == 3);
  CHECK(lines[1]["step"] == 3);
  CHECK(lines[2].contains("steps"));
}

TEST_CASE("the speed in the log is that of the steps, without evaluations and saving between them") {
  const TemporaryFolder folder;
  {
    double now = 0;
    TrainingLog log(folder / "log", Earlier::kept, [&] { return now; });
    for (i64 step = 1; step <= 4; ++step) {
      log.begin_step();
      now += 0.25;
      log.step(step, {.loss = 2, .items = 100});
      if (step != 2) continue;
      now += 60;
      log.evaluation(step, {{"validation loss", 2.5}}, true);
      now += 5;  // a model is saved
    }
  }
  std::vector<double> speeds;
  for (const nlohmann::json& line : lines_of_log(folder / "log"))
    if (line.contains("loss")) speeds.push_back(line.at("tokens_per_s").get<double>());
  CHECK(speeds == std::vector<double>{400, 400, 400, 400});
}

TEST_CASE("a training without a step leaves the log as it was") {
  const TemporaryFolder folder;
  const std::string path = folder / "log", old = "{\"start\":\"line\"}\n";
  set_contents(path, old);
  LineRun run("");
  for (const Earlier earlier : {Earlier::continued, Earlier::replaced}) {
    TrainingLog log(path, earlier);
    log.start(run.training.trainer, "");
    log.end();
    CHECK(contents(path) == old);
  }
}

TEST_CASE("two trainings with one log: the second one is refused, and the first one's lines stay") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  TrainingLog first(path, Earlier::kept);
  first.score(1, "exact match", 0.5);
  const std::string before = contents(path);
  for (const Earlier earlier : {Earlier::kept, Earlier::continued, Earlier::replaced})
    CHECK(small::error_of([&] { TrainingLog(path, earlier); }) == "write " + path + ": somebody else is writing it");
  CHECK(contents(path) == before);
  first.end();
  CHECK(TrainingLog(path, Earlier::continued).used());
}
