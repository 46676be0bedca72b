// Chapter 9. Tests of how every sub-command ends: what it refuses at once, and where its results go.
#include "apps/program/command.h"

#include "tests/apps/run_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

#ifndef ORRERY_SANITIZED  // which has an allocator of its own
TEST_CASE("a model that does not fit into memory is refused at once") {
  for (const std::string command :
       {"toy --d-model 4096 --encoder-layers 24 --decoder-layers 24 --d-ff 16384 --max-memory 10000",
        "bench step --config gpt2 --width 49152", "bench profile --config gpt2 --width 49152"}) {
    CAPTURE(command);
    const Result result = errors(command);
    CHECK(result.exit_code == 1);
    CHECK(contains(line(result.text, -1), " parameters: tensor: shape ["));
    CHECK(contains(line(result.text, -1), " bytes that tensors may take (limit_memory, --max-memory)"));
  }
}
#endif

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
