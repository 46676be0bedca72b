// Chapter 9. Tests of --save FOLDER/: where the model and the log stand, and who finds them there.
#include "apps/training/options.h"

#include "apps/program/system.h"
#include "core/machine/memory.h"
#include "core/machine/parallel.h"
#include "core/products/gemm.h"
#include "tests/apps/tasks/toy/toy_program.h"
#include "tests/apps/tasks/translate/small_translation.h"
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

TEST_CASE("without --max-memory the limit is nine tenths of what is free, and no more than the machine has") {
  if (!small::counts_memory()) return;
  const SystemMemory memory = memory_of(SystemFiles());
  REQUIRE(memory.available > 0);
  const struct RestoredLimit {
    i64 before = memory_counters().limit_bytes;
    ~RestoredLimit() { limit_memory(before); }
  } restored;
  RunOptions run;
  run.threads = threads();
  run.tiles = least_tiles();
  set_up(run);
  const i64 limit = memory_counters().limit_bytes;
  CHECK(limit <= memory.total / 10 * 9);
  const double share = static_cast<double>(limit) / static_cast<double>(memory.available);
  CHECK(share > 0.9 / 1.5);  // other programs take and free memory meanwhile
  CHECK(share < 0.9 * 1.5);
}

TEST_CASE("promise 22: a training that --max-memory is too small for ends with an error, and others run") {
  if (!small::counts_memory()) return;
  const std::string toy = "toy --steps 2 --warmup 1 --threads 1 --max-memory ",
                    reason = " bytes that tensors may take (limit_memory, --max-memory)\n";
  const auto error_of = [&](const std::string& command) {
    const Result result = errors(command);
    CHECK(result.exit_code == 1);
    CHECK(result.text.ends_with(reason));
    return line(result.text, -1);
  };
  const TemporaryFolder folder;
  const std::string quoted = " --save '" + (folder / "model") + "'";
  const Result in_first_step = errors(toy + "8" + quoted);
  CHECK(in_first_step.exit_code == 1);
  CHECK(contains(in_first_step.text, reason));
  CHECK_FALSE(std::filesystem::exists(folder / "model"));
  CHECK(run(toy + "100").exit_code == 0);
  check_usage_error("toy --max-memory 0", "--max-memory", "from 1 to");

  const small::AnimalText text = small::animal_text();
  set_contents(folder / "a.en", text.english);
  set_contents(folder / "a.de", text.german);
  const std::string translate = "translate train --steps 2 --segmented --source '" + (folder / "a.en") +
                                "' --target '" + (folder / "a.de") + "' --max-memory ";
  CHECK(contains(error_of("lm train --steps 2 --max-memory 3"),
                 "lm: a model of 804096 parameters: tensor: shape [804096] of f32 takes 3216384 bytes, "));
  CHECK(contains(error_of(translate + "4"), " parameters: tensor: "));
  std::filesystem::resize_file(folder / "a.de", 6 << 20);
  CHECK(contains(error_of(translate + "10"), "translate: the text: tensor: "));
}
