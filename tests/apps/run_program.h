// Chapter 9. Running the built program from a test: trainings that take a moment, the exit code, what it wrote.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

namespace orrery::program {

using orrery::written;
using small::contains;
using small::repeated;
using small::times;

/// Options of an lm that takes a moment: a tiny model, and few steps (`quick_lm`).
inline const std::string tiny = "--batch 2 --block 8 --layers 1 --heads 2 --d-model 8 --d-ff 8 ";
inline const std::string quick_lm = tiny + "--steps 4 --warmup 1 --evaluate-every 2 --estimate-batches 2 ";
/// A toy that learns next to nothing, in a moment.
inline const std::string small_toy_options =
    "--batch 4 --d-model 8 --heads 2 --d-ff 8 --encoder-layers 1 --decoder-layers 1 --max-length 9 ";
inline const std::string quick_toy = "toy --steps 3 " + small_toy_options;

struct Result {
  int exit_code;
  std::string text;
};

/// Runs a command in a shell; `text` is what it wrote to stdout, or where its redirections lead.
inline Result shell(const std::string& command) {
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Result result{};
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.text.append(buffer, n);
  const int status = pclose(pipe);
  REQUIRE(WIFEXITED(status));
  result.exit_code = WEXITSTATUS(status);
  return result;
}

/// The program, as a shell reads it, and a space.
inline const std::string quoted_program = "'" ORRERY_PROGRAM "' ";

/// Runs `orrery ARGUMENTS`.
inline Result run(const std::string& arguments, const std::string& redirect = "2>/dev/null") {
  return shell(quoted_program + arguments + " " + redirect);
}

/// What it wrote to stderr, stdout left out.
inline Result errors(const std::string& arguments) { return run(arguments, "2>&1 >/dev/null"); }

/// Line number `i` of a text; negative numbers count from the end.
inline std::string line(const std::string& text, int i) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one);) lines.push_back(one);
  const int n = static_cast<int>(lines.size()), at = i < 0 ? i + n : i;
  return at >= 0 && at < n ? lines[static_cast<size_t>(at)] : "(no such line)";
}

/// The fingerprint that `--hash` prints; "" if the program did not come that far.
inline std::string hash_in(const std::string& output) {
  const size_t at = output.find("hash ");
  return at == std::string::npos ? "" : output.substr(at, output.find('\n', at) - at);
}

/// The fingerprint that `orrery ARGUMENTS` prints. Without one, two failures would pass for the same training.
inline std::string trained_hash(const std::string& arguments) {
  CAPTURE(arguments);
  const std::string hash = hash_in(run(arguments).text);
  REQUIRE(hash != "");
  return hash;
}

/// The same after the training `orrery TASK train OPTIONS` was stopped at once, with `model` as its file, and resumed.
inline std::string resumed_hash(const std::string& training, const std::string& model, const std::string& more = "") {
  REQUIRE(errors(training + " --time-limit 0.0001 --overwrite --save '" + model + "'").exit_code == 130);
  return trained_hash(training.substr(0, training.find(' ')) + " train --hash --resume '" + model + "' " + more);
}

/// What a training that ends well writes.
inline std::string trained(const std::string& training) {
  const Result result = run(training, "2>&1");
  CAPTURE(result.text);
  REQUIRE(result.exit_code == 0);
  return result.text;
}

/// A mistake on the command line: exit code 2, and one line on stderr that names what was wrong and what is right.
inline void check_usage_error(const std::string& arguments, const std::string& wrong, const std::string& right) {
  CAPTURE(arguments);
  const Result result = errors(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.text.starts_with("orrery: "));
  CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 1);
  CHECK(contains(result.text, wrong));
  CHECK(contains(result.text, right));
  CHECK(run(arguments).text.empty());
}

/// What the program wrote, without the lines about work that took longer than a second: "reading a.txt ...".
inline std::string without_phases(const std::string& text) {
  std::istringstream in(text);
  std::string rest;
  for (std::string one; std::getline(in, one);)
    if (!one.ends_with(" ...")) rest += one + '\n';
  return rest;
}

/// Work that fails: exit code 1, and one line on stderr that says why. `command` is a whole command, not arguments.
inline void check_failure(const std::string& command, const std::string& part) {
  CAPTURE(command);
  Result result = shell(command + " 2>&1 >/dev/null");
  result.text = without_phases(result.text);
  CHECK(result.exit_code == 1);
  CHECK(result.text.starts_with("orrery: "));
  CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 1);
  CHECK(contains(result.text, part));
}

}  // namespace orrery::program

namespace orrery::tools {

/// Whether `what`, a tool that only some tests need, is `there`; where it is missing, such a test has nothing to show.
/// In .ci/run, which installs all of it, it has to be.
inline bool is_there(bool there, const std::string& what) {
  CAPTURE(what);
  CHECK((there || std::getenv("ORRERY_ALL_TESTS") == nullptr));
  return there;
}

/// Whether all of these commands are there, as above.
inline bool are_there(const std::vector<std::string>& commands) {
  return std::all_of(commands.begin(), commands.end(), [](const std::string& command) {
    return is_there(program::shell("command -v " + command).exit_code == 0, command);
  });
}

}  // namespace orrery::tools
