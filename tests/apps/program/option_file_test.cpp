// Chapter 9. Tests of options in a file, with a small command of their own.
#include "apps/program/option_file.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>

#include <nlohmann/json.hpp>

#include "apps/program/options.h"
#include "core/files/safetensors.h"
#include "core/tensor_ops.h"
#include "tests/core/support.h"
#include "tests/core/temporary_folder.h"

using namespace orrery;

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
