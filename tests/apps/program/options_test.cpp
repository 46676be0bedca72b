// Chapter 9. Tests of options: as a shell reads them, without a value, given twice, and contradicting one another.
#include "apps/program/options.h"

#include "tests/apps/run_program.h"

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

TEST_CASE("the name of a file does not begin like an option, and an option is no other option's value") {
  const std::string rule = ": must not begin with '-', as options do; write ./";
  for (const std::string option :
       {"trace --html", "toy --losses", "toy --save", "toy --log", "toy --load", "doctor --json",
        "figure attention --out", "inspect x --json", "gradcheck softmax --json", "claims --list --json",
        "translate decode --load x --attention", "translate score a b --json", "lm train x --valid",
        "bench step --json", "lm export --load x --save"}) {
    const std::string name = option.substr(option.rfind(' ') + 1);
    check_usage_error(option + " -", name + rule, "-");
    check_usage_error(option + " --x", name + rule, "--x");
    check_usage_error(option + " " + name, name + ": needs a value, not the option " + name, "");
  }
  check_usage_error("inspect -", "FILE" + rule + "-", "");
  check_usage_error("translate decode --load x -", "FILE" + rule + "-", "");
  check_usage_error("lm train -", "FILE" + rule + "-", "");
  check_usage_error("translate score a -", "REFERENCE" + rule + "-", "");
  check_usage_error("report -", "RUN" + rule + "-", "");
  check_usage_error("lm sample --load x --prompt --tokens", "--prompt: needs a value, not the option --tokens", "");
}

TEST_CASE(
    "a missing value, an option given twice and a flag with a value are wrong usage that names option and command") {
  check_usage_error("claims --json", "--json: 1 required FILE missing", "; see orrery claims --help");
  check_usage_error("toy --steps 5 --steps 6", "--steps: At Most 1 required", "; see orrery toy --help");
  check_usage_error("toy --steps " + std::string(100'000, '7') + "x", "--steps", "");  // as long as a shell can give
  check_usage_error("gradcheck --list=abc", "list was given a disallowed flag override",
                    "; see orrery gradcheck --help");
  for (const std::string value : {"abc", "5", "false"})
    check_usage_error("toy --norm-first=" + value, "norm-first", "");
}
