// Chapter 9. Files of trainings, told apart by what they hold.
#include "apps/show/report/run_files.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "apps/program/option_file.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/apps/show/report/written_log.h"
#include "tests/core/support.h"

using namespace orrery;
using namespace orrery::run_report;

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

TEST_CASE("a folder that cannot be opened is one clear error") {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit no_more_files{0, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &no_more_files) == 0);
  const std::string error = small::error_of([&] { read_run_files({path}); });
  setrlimit(RLIMIT_NOFILE, &before);
  CHECK(error == "report: cannot read the folder " + path + ": Too many open files");
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
