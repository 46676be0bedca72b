// Chapter 9. Tests of --save FOLDER/: where the model and the log stand, and who finds them there.
#include "apps/training/options.h"

#include "tests/apps/tasks/toy/toy_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;
using namespace orrery::program;

TEST_CASE("--save FOLDER/ keeps model and log in a new folder, where --resume, --load and report find them") {
  const TemporaryFolder folder;
  const std::string place = folder / "runs/first", quoted = "'" + place + "/' ";
  const auto there = [&](const std::string& name) { return std::filesystem::exists(place + "/" + name); };
  const std::string limit = "--time-limit 0.002 ";  // it stops as with Ctrl-C
  const Result stopped = errors("toy --steps 1000000 " + small_toy_options + limit + "--save " + quoted);
  REQUIRE(stopped.exit_code == 130);
  CHECK(contains(stopped.text, "; to resume: orrery toy --resume " + place + "/\n"));
  CHECK(there("model.safetensors"));
  CHECK(there("model.safetensors.resume"));
  const std::string log = contents(place + "/log.jsonl");
  CHECK(contains(log, "{\"step\":1,"));
  REQUIRE(run("toy " + limit + "--resume " + quoted).exit_code == 130);
  CHECK(contents(place + "/log.jsonl").starts_with(log));
  CHECK(contents(place + "/log.jsonl").size() > log.size());
  CHECK(run("toy --load '" + place + "' < /dev/null").exit_code == 0);
  const Result page = run("report '" + place + "'");
  CHECK(page.exit_code == 0);
  CHECK(contains(page.text, "log.jsonl"));
  CHECK(contains(page.text, "model.safetensors"));
}

TEST_CASE("--save FOLDER/ leaves another --log alone, and makes no folder for --print-config") {
  const TemporaryFolder folder;
  REQUIRE(run(quick_toy + "--log '" + (folder / "own") + "' --save '" + (folder / "run/") + "'").exit_code == 0);
  CHECK(std::filesystem::exists(folder / "own"));
  CHECK_FALSE(std::filesystem::exists(folder / "run/log.jsonl"));
  const Result stopped = errors("toy --steps 1000000 " + small_toy_options + "--time-limit 0.002 --log '" +
                                (folder / "second") + "' --save '" + (folder / "stopped/") + "'");
  CHECK(contains(stopped.text, "; to resume: orrery toy --resume " + (folder / "stopped/model.safetensors") +
                                   " --log " + (folder / "second") + "\n"));
  REQUIRE(run(quick_toy + "--print-config --save '" + (folder / "other/") + "'").exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "other"));
  set_contents(folder / "file", "text");
  const Result refused = run(quick_toy + "--save '" + (folder / "file/run/") + "'", "2>&1");
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.text, "orrery: make the folder " + (folder / "file") + ": File exists\n"));
}
