// Chapter 9. Tests of --help: it fits a terminal, and says what there is in groups.
#include "apps/program/help.h"

#include <algorithm>

#include "tests/apps/run_program.h"

using namespace orrery::program;

namespace {

// The sub-commands that a help text lists, each with the words before it: "bench " and "step".
std::vector<std::string> commands_in(const std::string& help, const std::string& before) {
  std::vector<std::string> found;
  const size_t list = help.find("\nSubcommands:\n");
  std::istringstream lines(list == help.npos ? "" : help.substr(list + 14));
  for (std::string one; std::getline(lines, one) && !one.empty();)
    if (one.size() > 2 && one[2] != ' ') found.push_back(before + one.substr(2, one.find(' ', 2) - 2));
  return found;
}

// All commands, from their help: "", "toy", "bench", "bench step", ...
std::vector<std::string> all_commands() {
  std::vector<std::string> all{""};
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string one = all[i];
    for (const std::string& sub : commands_in(run(one + " --help").text, one.empty() ? "" : one + " "))
      all.push_back(sub);
  }
  return all;
}

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
  const std::vector<std::string> all = all_commands();
  for (const std::string known : {"toy", "lm train", "bench busy", "translate score", "doctor"})
    CHECK(std::count(all.begin(), all.end(), known) == 1);
  for (const std::string& command : all) {
    CAPTURE(command);
    const Result help = run(command + " --help");
    CHECK(help.exit_code == 0);
    CHECK(unreadable_lines(help.text) == "");
    CHECK_FALSE(contains(help.text, "\n\n\n"));
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

TEST_CASE("options that name a file to write say what becomes of an earlier one") {
  for (const std::string command : {"bench step", "claims", "doctor", "figure", "gradcheck", "inspect", "report", "toy",
                                    "trace", "translate decode", "translate score"}) {
    CAPTURE(command);
    std::istringstream words(run(command + " --help").text);
    std::string help;
    for (std::string word; words >> word;) help += word + ' ';
    CHECK(times(help, "; an earlier file is replaced, but never a model ") == (command == "toy" ? 3 : 1));
  }
}
