// Chapter 9. Tests of the manual page: it has every command and every option of the help, and man(1) can read it.
#include "apps/install/manual.h"

#include "tests/apps/install/tools.h"

using namespace orrery;
using program::contains;
using program::run;

namespace {

const OptionHelp quiet{.names = {"--quiet"}, .row = "--quiet", .group = "Run", .description = ".hidden 'and' a\\b"};
const OptionHelp seed{
    .names = {"--seed"}, .row = "--seed NUMBER=1", .group = "Data", .description = "Seed", .takes_value = true};
const OptionHelp file{.row = "FILE ...", .group = "Data", .description = "Texts", .takes_value = true};

// The words of `help` that begin with two dashes.
std::vector<std::string> options_in(const std::string& help) {
  std::vector<std::string> found;
  std::istringstream words(help);
  for (std::string word; words >> word;)
    if (word.starts_with("--") && word.size() > 2) found.push_back(word.substr(0, word.find_first_of(",.:;)`")));
  return found;
}

// The page without the escapes of man(1), the backslashes, so that "\-\-seed" becomes "--seed".
std::string shown(std::string page) {
  for (const std::string mark : {"\\&", "\\"})
    for (size_t at = 0; (at = page.find(mark, at)) != page.npos;) page.erase(at, mark.size());
  return page;
}

}  // namespace

TEST_CASE("promise 29: a page has a section for each command, with its options in groups") {
  const CommandHelp inner{
      .name = "inner", .description = "Does it", .footer = "Note.\n  an example", .options = {file}};
  const CommandHelp outer{
      .name = "outer", .description = "Holds it", .footer = "", .options = {quiet, seed}, .commands = {inner}};
  const std::string page =
      manual_page({.name = "orrery", .description = "A model", .footer = "", .commands = {outer}}, "0.1");
  CHECK(page ==
        ".TH ORRERY 1 \"\" \"orrery 0.1\" \"User Commands\"\n.SH NAME\norrery \\- A model\n"
        ".SH SYNOPSIS\norrery COMMAND [OPTION]...\n.SH OPTIONS\n.SH COMMANDS\n"
        ".SS orrery outer COMMAND [OPTION]...\nHolds it\n"
        ".PP\nRun:\n.TP\n.B \\-\\-quiet\n\\&.hidden 'and' a\\eb\n"
        ".PP\nData:\n.TP\n.B \\-\\-seed NUMBER=1\nSeed\n"
        ".SS orrery outer inner [OPTION]... [FILE ...]\nDoes it\n"
        ".PP\nData:\n.TP\n.B FILE ...\nTexts\n"
        ".PP\n.br\nNote.\n.EX\n  an example\n.EE\n");
}

TEST_CASE("promise 29: the program's page has every command and every option that its help has") {
  const std::string page = shown(run("manual").text);
  CHECK(page.starts_with(".TH ORRERY 1 "));
  CHECK(contains(page, "130: stopped by Ctrl-C, SIGTERM, SIGHUP or --time-limit."));
  for (const std::string command : {"toy", "lm train", "bench step", "translate decode", "complete", "manual"}) {
    CAPTURE(command);
    const size_t begin = page.find("\n.SS orrery " + command + " ");
    REQUIRE(begin != page.npos);
    const std::string section = page.substr(begin, page.find("\n.SS ", begin + 1) - begin);
    const std::vector<std::string> options = options_in(run(command + " --help").text);
    CHECK(!options.empty());
    for (const std::string& option : options) CHECK_MESSAGE(contains(section, option), option);
  }
}

TEST_CASE("promise 29: the page says nothing of the machine that wrote it") {
  const std::string variables = "OMP_NUM_THREADS=3 OPENBLAS_CORETYPE=Haswell ";
  CHECK(program::shell(variables + program::quoted_program + "manual").text == run("manual").text);
}

TEST_CASE("promise 29: man shows the page without a warning") {
  if (!tools::are_there({"man", "groff"})) return;
  const TemporaryFolder folder;
  set_contents(folder / "orrery.1", run("manual").text);
  const std::string man = "LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l '" + (folder / "orrery.1") + "' ";
  CHECK(program::shell(man + "2>&1 >/dev/null").text == "");
  const std::string text = program::shell(man + "2>/dev/null | col -bx").text;
  CHECK(contains(text, "--task NAME=reverse"));
  CHECK(contains(text, "\n         orrery complete -- toy --task re\n"));
}
