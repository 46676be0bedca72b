// Chapter 9. Tests of how every sub-command ends: what it refuses at once, and where its results go.
#include "apps/program/command.h"

#include "tests/apps/run_program.h"
#include "tests/apps/tasks/toy/toy_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

TEST_CASE("a model that does not fit into memory is refused at once") {
  const std::string program = quoted_program, huge = "--batch 65536 --max-length 512 --d-model 4096 ";
  check_failure(program + "toy " + huge + "--encoder-layers 24 --decoder-layers 24 --d-ff 16384", " MB of memory here");
  const std::string wide = "--config gpt2 --batch 100000 --length 1000 --width 12288";
  for (const std::string bench : {"step ", "profile ", "promises "}) {
    const Result result = errors("bench " + bench + wide);
    CHECK(result.exit_code == 1);
    CHECK(contains(line(result.text, -1), "parameters needs at least"));
    CHECK(contains(line(result.text, -1), " MB of memory here"));
  }
}

TEST_CASE("results are never written into another file, where the standard streams are closed") {
  const orrery::TemporaryFolder folder;
  const std::string log = folder / "log", model = folder / "model";
  const std::string toy = quoted_program + "toy --steps 2 " + small_toy_options + "--hash ";
  for (const std::string closed : {">&-", "<&- >&- 2>&-"}) {
    CAPTURE(closed);
    CHECK(shell(toy + "--overwrite --save '" + model + "' --log '" + log + "' " + closed).exit_code == 1);
    CHECK(orrery::contents(log).starts_with("{\"start\":\"toy\""));
    CHECK_FALSE(contains(orrery::contents(log), "\nhash "));
  }
}
