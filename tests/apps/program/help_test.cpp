// Chapter 9. Tests of --help: it fits a terminal, and says what there is in groups.
#include "apps/program/help.h"

#include "tests/apps/run_program.h"

using namespace orrery::program;

namespace {

const std::vector<std::string> all_commands{
    "",           "toy",       "lm",          "lm train",        "lm sample",     "lm eval",
    "gradcheck",  "leakcheck", "bench",       "bench step",      "bench profile", "bench promises",
    "bench gemm", "bench ops", "bench fused", "bench attention", "bench decode"};

// Lines that are too long, and those with nothing but what CLI11 lists by itself.
std::string unreadable_lines(const std::string& help) {
  std::istringstream lines(help);
  std::string found;
  for (std::string one; std::getline(lines, one);)
    if (one.size() > orrery::help_width || contains(one, "Excludes") || contains(one, "{false}")) found += one + "\n";
  return found;
}

}  // namespace

TEST_CASE("every help text is readable at 80 columns") {
  for (const std::string& command : all_commands) {
    CAPTURE(command);
    const Result help = run(command + " --help");
    CHECK(help.exit_code == 0);
    CHECK(unreadable_lines(help.text) == "");
    CHECK_FALSE(contains(help.text, "\n\n\n"));
    for (const std::string& other : all_commands)  // none is forgotten in the list above
      if (other.starts_with(command + " ")) CHECK(contains(help.text, "\n  " + other.substr(command.size() + 1)));
  }
}

TEST_CASE("the long ones are in groups, with defaults and negations") {
  const std::string toy = run("toy --help").text, lm = run("lm train --help").text;
  for (const std::string group : {"\nTask:\n", "\nModel:\n", "\nTraining:\n", "\nRun:\n"}) {
    CHECK(contains(toy, group));
    CHECK(contains(lm, group) == (group != "\nTask:\n"));
  }
  CHECK(contains(toy, "\n  --norm-first, --no-norm-first\n"));
  CHECK(contains(toy, "\n  --eps NUMBER=1e-09 "));
  CHECK(contains(lm, "\n  --bias, --no-bias "));
  CHECK(contains(toy, "\n  --d-model NUMBER=64         Width of the model\n"));
}
