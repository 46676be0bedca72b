// Chapter 9. Tests of the program's command line: options as a shell reads them and in a file, help, exit codes, and
// one line for each mistake.
#include "apps/program/options.h"

#include <doctest/doctest.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/program/command.h"
#include "apps/program/option_file.h"
#include "core/files/safetensors.h"
#include "core/machine/vector_level.h"
#include "core/tensor_ops.h"
#include "tests/apps/run_program.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery::program;
using namespace orrery;

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
       {"trace --html", "toy --save", "toy --log", "figure attention --out", "lm export --load x --save"}) {
    const std::string name = option.substr(option.rfind(' ') + 1);
    check_usage_error(option + " -", name + rule, "-");
    check_usage_error(option + " --x", name + rule, "--x");
    check_usage_error(option + " " + name, name + ": needs a value, not the option " + name, "");
  }
  check_usage_error("inspect -", "FILE" + rule + "-", "");
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

namespace {

enum class Paint { red, green, blue };
constexpr std::array<std::string_view, 3> names(Paint) { return {"red", "green", "blue"}; }

// A command with an option of every kind; the preset "large" has size 10 and is round.
struct Painter {
  Painter() {
    add_config(app, config, chosen);
    add_choice(app, "--preset", preset, {"small", "large"}, "Sizes", [this](const std::string& name) {
      if (name == "large") {
        size = 10;
        round = true;
      }
    });
    add_whole_number(app, "--size", size, 0, 100, "Size");
    add_number(app, "--share", share, 0, 1, "Share");
    add_choice(app, "--colour", colour, "Colour");
    add_switch(app, "round", round, "Round");
    add_flag(app, "--dry", dry, "Dry");
    add_text(app, "FILE", file, "", "What to paint");
    chosen = options_of(app);
  }
  std::string error_of(std::vector<std::string> arguments) {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    try {
      app.parse(arguments);
      return "";
    } catch (const Error& error) { return error.what(); } catch (const CLI::ParseError& error) {
      return error.what();
    }
  }
  std::string values() const { return values_of(chosen).dump(); }

  CLI::App app;
  std::string config, preset = "small", file;
  i64 size = 1;
  double share = 0.5;
  Paint colour = Paint::green;
  bool round = false, dry = false;
  std::vector<CLI::Option*> chosen;
};

std::string values_after(const std::vector<std::string>& arguments) {
  Painter painter;
  CHECK(painter.error_of(arguments) == "");
  return painter.values();
}

}  // namespace

TEST_CASE("values are those that a run has: defaults, a preset's, and typed ones, exactly") {
  CHECK(values_after({}) == R"({"preset":"small","size":1,"share":0.5,"colour":"green","round":false,"dry":false})");
  CHECK(values_after({"--preset", "large", "--share", "0.3333333333333333", "--dry", "a file"}) ==
        R"({"preset":"large","size":10,"share":0.3333333333333333,"colour":"green","round":true,"dry":true,)"
        R"("FILE":"a file"})");
  CHECK(values_after({"--no-round", "--preset", "large", "--colour", "blue", "--share", "1e-7"}) ==
        R"({"preset":"large","size":10,"share":1e-07,"colour":"blue","round":false,"dry":false})");
}

TEST_CASE("a file of values gives them again, whatever they are") {
  const TemporaryFolder folder;
  const std::string path = folder / "options";
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{},
                                             {"--preset", "large"},
                                             {"--preset", "large", "--no-round", "--size", "3"},
                                             {"--share", "0.1", "--colour", "red", "--dry", "--round", "x y"}}) {
    const std::string values = values_after(arguments);
    set_contents(path, values);
    CHECK(values_after({"--config", path}) == values);
    write_safetensors(path, {{"x", zeros({1})}}, {{options_key, values}});
    CHECK(values_after({"--config", path}) == values);
  }
}

TEST_CASE("a file changes its options alone, before or after others, and what is typed wins") {
  const TemporaryFolder folder;
  const std::string path = folder / "options";
  set_contents(path, R"({"share": 0, "size": 7, "round": false, "FILE": "house"})");
  const std::string both = R"({"preset":"large","size":7,"share":0.25,"colour":"green","round":false,"dry":false,)"
                           R"("FILE":"house"})";
  CHECK(values_after({"--config", path, "--preset", "large", "--share", "0.25"}) == both);
  CHECK(values_after({"--share", "0.25", "--preset", "large", "--config", path}) == both);
  CHECK(values_after({"--config", path, "--round", "tree"}) ==
        R"({"preset":"small","size":7,"share":0,"colour":"green","round":true,"dry":false,"FILE":"tree"})");
}

TEST_CASE("what a file must not have is told in one line, with the file and the option") {
  const TemporaryFolder folder;
  const std::string path = folder / "options";
  const auto error_of = [&](const std::string& text) {
    set_contents(path, text);
    const std::string error = Painter().error_of({"--config", path});
    CHECK(error.starts_with("read " + path + ": "));
    CHECK(error.find('\n') == std::string::npos);
    return error.substr(std::min(error.size(), path.size() + 7));
  };
  CHECK(error_of(R"({"sise": 3})") == "there is no option \"sise\"");
  CHECK(error_of(R"({"no-round": true})") == "there is no option \"no-round\"");
  CHECK(error_of(R"({"config": "x"})") == "there is no option \"config\"");
  CHECK(error_of(R"({"help": true})") == "there is no option \"help\"");
  CHECK(error_of(R"({"size": "3"})") == "size must be a number, not \"3\"");
  CHECK(error_of(R"({"round": 1})") == "round must be true or false, not 1");
  CHECK(error_of(R"({"colour": null})") == "colour must be text, not null");
  CHECK(error_of(R"({"size": 101})") == "--size: '101' is not a whole number from 0 to 100");
  CHECK(error_of(R"({"size": 3.0})") == "--size: '3.0' is not a whole number from 0 to 100");
  CHECK(error_of(R"({"share": 2})") == "--share: '2' is not a number from 0 to 1");
  CHECK(error_of(R"({"colour": "pink"})") == "--colour: 'pink' is not one of: red, green, blue");
  CHECK(error_of(R"({"FILE": ""})") == "FILE: must not be empty");
  error_of("");
  error_of("[1]");
  error_of(R"({"size": 1)");
  error_of(std::string(100'000, '['));
  error_of(std::string(most_json_bytes + 1, ' '));
  write_safetensors(path, {{"x", zeros({1})}});
  CHECK(Painter().error_of({"--config", path}) == "read " + path + ": the file has no options of a training");
  CHECK(Painter().error_of({"--config", folder / "none"}) ==
        "read " + (folder / "none") + ": No such file or directory");
  CHECK(Painter().error_of({"--config", path, "--size", "101"}) ==
        "read " + path + ": the file has no options of a training");
  write_safetensors(path, {{"x", zeros({1})}}, {{options_key, R"({"model": "gpt"})"}});
  CHECK(Painter().error_of({"--config", path}) ==
        "read " + path + ": there is no option \"model\"; another command or another version saved this model");
  set_contents(path, "{}");
  CHECK(Painter().error_of({"--config", path, "--size", "101"}) == "--size: '101' is not a whole number from 0 to 100");
}

#ifndef ORRERY_SANITIZED  // under which this takes a minute: each command starts once more
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

// A sanitizer has an allocator of its own.
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

TEST_CASE("help and version need no memory for OpenBLAS; what needs it says so where addresses are too few") {
  if (!orrery::small::counts_memory()) return;  // AddressSanitizer takes more addresses than the limit
  const std::string limited = "ulimit -v 300000; timeout 60 " + quoted_program;
  for (const std::string text : {"--version", "--help", "lm train --help"}) {
    CHECK(shell(limited + text).exit_code == 0);
    CHECK(shell(limited + text).text == run(text).text);
  }
  const Result refused = shell(limited + "figure speed 2>&1");
  CHECK(refused.exit_code == 1);
  CHECK(refused.text.starts_with("orrery: ulimit -v allows 292 MB of addresses, and OpenBLAS needs "));
}

TEST_CASE("a native build names the CPU level that it was built for") {
  const std::string native =
      "native build, for CPUs with " + std::string(orrery::name_of(orrery::compiled_vector_level()));
  CHECK(contains(run("--version").text, native) == ORRERY_IS_NATIVE);
}

TEST_CASE("without a sub-command the program shows its help and says that this is wrong usage") {
  const Result result = errors("");
  CHECK(result.exit_code == 2);
  CHECK(contains(result.text, "Usage: orrery"));
}

TEST_CASE("help and version are results") {
  CHECK(run("--version").exit_code == 0);
  CHECK(run("--version").text.starts_with("orrery "));
  CHECK(run("--help").exit_code == 0);
  CHECK(contains(run("--help").text, "gradcheck"));
  CHECK(contains(run("--help").text, "\nThe book: apps/book/README.md. Its exercises: apps/run exercise.\n"));
}

TEST_CASE("each mistake on the command line is one line and exit code 2") {
  check_usage_error("nonsense", "'nonsense'", "there are: ");
  check_usage_error("--nonsense", "'--nonsense'", "orrery --help");
  check_usage_error("gradcheck --nonsense", "'--nonsense'", "orrery gradcheck --help");
  check_usage_error("toy --step 3", "'--step' (--steps?)", "see orrery toy --help");
  check_usage_error("toy nonsense", "unexpected argument 'nonsense'", "orrery toy --help");
  check_usage_error("gradcheck nonsense", "'nonsense'", "orrery gradcheck --list");
  check_usage_error("gradcheck softmax nonsense", "'nonsense'", "orrery gradcheck --list");
  check_usage_error("gradcheck --seed", "--seed", "NUMBER");
  check_usage_error("figure", "PICTURE is required; see orrery figure --help", "");
  check_usage_error("figure nope", "'nope'", "attention, speed, ");
  check_usage_error("lm sample", "--load is required; see orrery lm sample --help", "");
  check_usage_error("gradcheck --threads two", "--threads: 'two'", "from 1 to 256");
  check_usage_error("gradcheck --seed=1 --seed=2", "--seed", "At Most 1");
  check_usage_error("translate train --smoothing 1", "--smoothing", "from 0 to 0.999999");
  check_usage_error("toy --time-limit -1", "--time-limit: '-1'", "a number from 0 to 1000000\n");
}

TEST_CASE("whole numbers are written in one way and stay in their range") {
  for (const std::string wrong :
       {"0", "257", "-1", "1.0", "1e1", "0x1", "01", "+1", "''", "' 1'", "99999999999999999999"})
    check_usage_error("gradcheck --threads=" + wrong, "--threads", wrong == "''" ? "" : "from 1 to 256");
}

TEST_CASE("the run says its seed, threads and products on stderr, where no colours and no redrawing go into a pipe") {
  const Result result = errors("gradcheck softmax --seed 7 --threads 1");
  CHECK(result.text.starts_with("seed 7, 1 thread, products by the library\n"));
  CHECK_FALSE(contains(result.text, "\033"));
  CHECK_FALSE(contains(result.text, "\r"));
}

TEST_CASE("results that cannot be written are a failure") {
  for (const std::string command : {"gradcheck --list", "gradcheck --help", "--version"}) {
    const Result result = run(command, "2>&1 >/dev/full");
    CHECK(result.exit_code == 1);
    CHECK(result.text == "orrery: cannot write the results to standard output\n");
  }
}

TEST_CASE("a reader that went away (orrery ... | head) is not a failure") {
  int ends[2];
  constexpr int unused_descriptor = 9;
  REQUIRE(pipe(ends) == 0);
  REQUIRE(dup2(ends[1], unused_descriptor) == unused_descriptor);
  close(ends[0]);
  close(ends[1]);
  const Result result = run("gradcheck --list", "2>&1 >&9");
  close(unused_descriptor);
  CHECK(result.exit_code == 0);
  CHECK(result.text.empty());
}
