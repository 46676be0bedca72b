// Chapter 9. Tests of what the sub-commands share: arguments as a shell reads them, and options that contradict.
#include "apps/program/command.h"

#include <sys/resource.h>

#include "apps/training/model_file.h"
#include "core/files/file.h"
#include "tests/apps/run_program.h"
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

TEST_CASE("a file that the system cannot read now may be a model, so nothing is written over it") {
  const orrery::TemporaryFolder folder;
  const std::string text = folder / "text", none = folder / "none";
  orrery::set_contents(text, "no model");
  CHECK_FALSE(orrery::holds_model(text));
  CHECK_FALSE(orrery::holds_model(none));
  CHECK_FALSE(orrery::holds_model(folder.path().string()));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit no_files{0, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &no_files) == 0);
  // The sanitizers need files to look at an error, so it is kept until there may be files again.
  const std::exception_ptr failure = orrery::failure_of([&] { orrery::check_can_write_text("test", "--out", text); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  REQUIRE(static_cast<bool>(failure));
  const std::string message = "read " + text + ": Too many open files";
  CHECK_THROWS_WITH_AS(std::rethrow_exception(failure), message.c_str(), orrery::SystemError);
}

TEST_CASE("options that contradict one another are wrong usage in every sub-command") {
  check_usage_error("bench step --width 63", "--width", "a multiple of 4, the heads of toy, not 63");
  check_usage_error("bench profile --config base --width 100", "--width", "the heads of base");
  check_usage_error("bench promises --width 63", "--width", "the heads of toy");
  check_usage_error("bench decode --context 2000", "--context and --steps", "1024 positions of gpt2");
  check_usage_error("toy --symbols 2 --min-length 1 --max-length 1", "--symbols", "2 symbols and length 1 to 1");
  check_usage_error("toy --norm-first --no-norm-first", "--norm-first", "--no-norm-first");
  check_usage_error("lm train --bias --no-bias", "--bias", "--no-bias");
  check_usage_error("lm train --resume x --overwrite", "--resume", "--overwrite");
  check_usage_error("toy --load x --overwrite", "--load", "--overwrite");
}

TEST_CASE("what no memory holds is refused at once") {
  const std::string program = quoted_program, huge = "--batch 65536 --max-length 512 --d-model 4096 ";
  check_failure(program + "toy " + huge + "--encoder-layers 24 --decoder-layers 24 --d-ff 16384", "of memory for this");
  const std::string wide = "--config gpt2 --batch 100000 --length 1000 --width 12288";
  for (const std::string bench : {"step ", "profile ", "promises "}) {
    const Result result = errors("bench " + bench + wide);
    CHECK(result.exit_code == 1);
    CHECK(contains(line(result.text, -1), "parameters takes"));
    CHECK(contains(line(result.text, -1), "of memory for this"));
  }
}
