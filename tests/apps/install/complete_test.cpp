// Chapter 9. Tests of completion: what the program says, and what each shell makes of it.
#include "apps/install/complete.h"

#include <filesystem>

#include "tests/apps/run_program.h"

using namespace orrery;
using program::contains;
using program::Result;
using program::run;

namespace {

CommandHelp small_program() {
  const OptionHelp task{.names = {"-t", "--task"},
                        .description = "What to do",
                        .takes_value = true,
                        .default_value = "sort",
                        .choices = {"copy", "sort"}};
  const OptionHelp seed{.names = {"--seed"}, .description = "", .takes_value = true, .default_value = "7"};
  const OptionHelp quiet{.names = {"--quiet", "--no-quiet"}, .description = "Say nothing"};
  const OptionHelp file{.description = "", .takes_value = true};
  const OptionHelp picture{.description = "", .takes_value = true, .choices = {"tape", "tiles"}};
  const CommandHelp play{.name = "play", .description = "Plays", .options = {task, seed, quiet}};
  const CommandHelp show{.name = "show", .description = "Shows", .options = {seed, file}};
  const CommandHelp draw{.name = "draw", .description = "Draws", .options = {picture}};
  return {.name = "program", .description = "", .commands = {play, show, draw}};
}

// The words that `typed` can become, separated by spaces.
std::string completed(const std::vector<std::string>& typed) {
  std::string words;
  for (const Completion& one : completions(small_program(), typed)) words += (words.empty() ? "" : " ") + one.word;
  return words;
}

// A shell in which `orrery` is the built program, and its script has been read.
std::string in_shell(const std::string& shell, const std::string& commands) {
  const std::string folder = std::filesystem::path(ORRERY_PROGRAM).parent_path();
  const Result result = program::shell("cd '" ORRERY_SOURCE_DIR "' && PATH='" + folder + "':$PATH " + shell +
                                       " 2>&1 <<'END'\n" + commands + "\nEND");
  CHECK(result.exit_code == 0);
  return result.text;
}

}  // namespace

TEST_CASE("promise 29: commands, options and their values are completed where each may stand") {
  CHECK(completed({}) == "");
  CHECK(completed({""}) == "play show draw");
  CHECK(completed({"s"}) == "show");
  CHECK(completed({"play", "-"}) == "-t --task --seed --quiet --no-quiet");
  CHECK(completed({"play", "--q"}) == "--quiet");
  CHECK(completed({"play", "--task", ""}) == "copy sort");
  CHECK(completed({"play", "-t", "c"}) == "copy");
  CHECK(completed({"play", "--task", "x"}) == "");
  CHECK(completed({"play", "--seed", ""}) == "7");
  CHECK(completed({"play", "--task=s"}) == "--task=sort");
  CHECK(completed({"play", "--quiet=s"}) == "");
  CHECK(completed({"draw", "ti"}) == "tiles");
  CHECK(completed({"show", ""}) == "");  // files, which the shell knows
  CHECK(completed({"nonsense", "--task", ""}) == "play show draw");
}

TEST_CASE("promise 29: a command without arguments offers its options, and a value is no command and no option") {
  CHECK(completed({"play", ""}) == "-t --task --seed --quiet --no-quiet");
  CHECK(completed({"play", "--task", "show", "--q"}) == "--quiet");
  CHECK(completed({"play", "--task", "--seed", ""}) == "-t --task --seed --quiet --no-quiet");
}

TEST_CASE("promise 29: bash takes --task=copy for three words") {
  CHECK(completed({"play", "--task", "="}) == "copy sort");
  CHECK(completed({"play", "--task", "=", "s"}) == "sort");
  CHECK(completed({"play", "--task", "=", "sort", "--q"}) == "--quiet");
}

TEST_CASE("promise 29: orrery complete says what its own help says, with a description after a tab") {
  CHECK(run("complete -- toy --task re").text == "reverse\tthe default\n");
  CHECK(run("complete -- toy --task c").text == "copy\t\n");
  CHECK(run("complete -- toy --no-fin").text == "--no-final-norm\tOne more normalisation after each stack\n");
  CHECK(contains(run("complete -- lm ''").text, "sample\tContinue a prompt "));
  CHECK(contains(run("complete -- figure t").text, "toy_heads\t"));
  CHECK(run("complete -- inspect ''").text == "");
  CHECK(run("complete -- toy --he").text ==
        "--help\tPrint this help and exit\n--heads\tAttention heads; must divide "
        "the width\n");
  CHECK(run("complete -- toy --norm-first --task c").text == "copy\t\n");  // a switch has no value
  CHECK(run("complete -- gradcheck --list --mut").text.starts_with("--mutate\t"));
  CHECK(run("complete").exit_code == 0);
}

TEST_CASE("promise 29: bash completes commands, options and their values") {
  if (!tools::are_there({"bash"})) return;
  const std::string type =
      "source apps/install/orrery.bash\n"
      "type_words() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _orrery \"$1\"; echo \"${COMPREPLY[*]}\"; }\n";
  CHECK(in_shell("bash", type + "type_words orrery toy --ta") == "--task\n");
  CHECK(in_shell("bash", type + "type_words orrery toy --task = r") == "reverse\n");
  CHECK(in_shell("bash", type + "type_words orrery lm ''") == "train sample eval export\n");
  CHECK(in_shell("bash", type + "type_words orrery inspect ''") == "\n");
  CHECK(contains(in_shell("bash", type + "complete -p orrery"), "-o default"));
}

TEST_CASE("promise 29: zsh completes commands, options and names of files") {
  if (!tools::are_there({"zsh"})) return;
  const std::string type =  // zsh's own functions stand in an editor; these print what they are given
      "_describe() { print -l -- \"${(@P)2}\" }\n_files() { print files }\n"
      "type_words() { words=(\"$@\"); CURRENT=$#; source apps/install/orrery.zsh }\n";
  CHECK(in_shell("zsh -f", type + "type_words orrery toy --ta") ==
        "--task:What to do with a sequence: reverse, copy, sort\n");
  CHECK(in_shell("zsh -f", type + "type_words orrery lm e") ==
        "eval:Evaluate a model from `lm train --save` on a text\n"
        "export:Write a model for Hugging Face's transformers\n");
  CHECK(in_shell("zsh -f", type + "type_words orrery inspect ''") == "files\n");
}

TEST_CASE("promise 29: fish completes options, their values and names of files") {
  if (!tools::are_there({"fish"})) return;
  const TemporaryFolder home;  // where fish keeps its settings
  const std::string fish = "HOME='" + (home / "") + "' fish", script = "source apps/install/orrery.fish\n";
  CHECK(in_shell(fish, script + "complete -C 'orrery toy --ta'") ==
        "--task\tWhat to do with a sequence: reverse, copy, sort\n");
  CHECK(in_shell(fish, script + "complete -C 'orrery toy --task=re'") == "--task=reverse\tthe default\n");
  CHECK(in_shell(fish, script + "complete -C 'orrery inspect READ'") == "README.md\nREADME.zh.md\n");
}
