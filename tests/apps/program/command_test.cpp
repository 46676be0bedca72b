// Chapter 9. Tests of what the sub-commands share: arguments as a shell reads them, and options that contradict.
#include "apps/program/command.h"

#include "tests/apps/run_program.h"
#include "tests/apps/toy/toy_program.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;

TEST_CASE("an argument is quoted as a shell reads it, and only where it must be") {
  CHECK(orrery::shell_quoted("runs/a-1.safetensors") == "runs/a-1.safetensors");
  CHECK(orrery::shell_quoted("my model") == "'my model'");
  for (const std::string argument : {"", "my model", "it's", "$HOME", "a;b", "a\\b", "*", "~", "a\nb", "\u00e4", "'"}) {
    CAPTURE(argument);
    CHECK(shell("printf %s " + orrery::shell_quoted(argument)).text == argument);
  }
}

TEST_CASE("options that contradict one another are wrong usage in every sub-command") {
  check_usage_error("bench step --width 63", "--width", "a multiple of 4, the heads of toy, not 63");
  check_usage_error("bench profile --config base --width 100", "--width", "the heads of base");
  check_usage_error("bench promises --width 63", "--width", "the heads of toy");
  check_usage_error("bench decode --context 2000", "--context and --steps", "1024 positions of gpt2");
  check_usage_error("toy --symbols 2 --min-length 1 --max-length 1", "--symbols", "2 symbols and length 1 to 1");
  check_usage_error("toy --norm-first --no-norm-first", "--norm-first", "--no-norm-first");
  check_usage_error("lm train --rotary --d-model 20 --heads 4", "--rotary", "--d-model / --heads is 5");
  check_usage_error("lm train --bias --no-bias", "--bias", "--no-bias");
  check_usage_error("lm train --resume x --overwrite", "--resume", "--overwrite");
  check_usage_error("toy --load x --overwrite", "--load", "--overwrite");
}

TEST_CASE("an option without its value, given twice, or a flag with a value is told in our words") {
  check_usage_error("claims --json", "--json: needs a value, FILE", "");
  check_usage_error("gradcheck --seeds", "--seeds: needs a value, FIRST..LAST", "");
  check_usage_error("toy --steps 5 --steps 6", "--steps: may be given only once", "");
  check_usage_error("toy --steps " + std::string(100'000, '7') + "x", "--steps", "");  // as long as a shell can give
  check_usage_error("gradcheck --list=abc", "--list: takes no value", "");
  check_usage_error("toy --overwrite=no", "--overwrite: takes no value", "");
  for (const std::string value : {"abc", "5", "false"}) {
    check_usage_error("toy --norm-first=" + value, "--norm-first: takes no value", "");
    check_usage_error("toy --no-norm-first=" + value + "x", "--no-norm-first: takes no value", "");
  }
}

TEST_CASE("what no memory holds is refused at once") {
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
