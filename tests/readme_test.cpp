// Chapter 9. The README and the folders' READMEs: programs, paths and commands in them are what the repository holds.
#include <doctest/doctest.h>

#include <iomanip>

#include "apps/show/figure/figures.h"
#include "tests/apps/book/text_rules.h"
#include "tests/apps/run_program.h"

using namespace orrery;
using namespace orrery::style;

namespace {

// Names of files and folders: what begins with a folder of the repository, and what stands alone in backticks and looks
// like a file.
std::set<std::string> paths_in(const Words& lines) {
  static const std::regex from_root(
      "(?:^|[^A-Za-z0-9_./-])((?:core|autograd|nn|optim|apps|tests|\\.ci)/[A-Za-z0-9_./]*)");
  static const std::regex alone("`([A-Za-z0-9_./]+(?:\\.(?:h|cpp|md|txt|json)|/))`");
  std::set<std::string> result = found_in(lines, from_root);
  result.merge(found_in(lines, alone));
  std::set<std::string> trimmed;
  for (const std::string& path : result) trimmed.insert(path.substr(0, path.find_last_not_of('.') + 1));
  return trimmed;
}

// Sub-commands in backticks and in blocks; prose may say "orrery is".
std::set<std::string> commands_in(const Words& lines) {
  static const std::regex command("(?:apps/run|orrery) ([a-z]+)(?=\\s|$)"), quoted("`([^`]+)`");
  Words pieces;
  bool block = false;
  for (const std::string& line : lines) {
    if (line.starts_with("```"))
      block = !block;
    else if (block)
      pieces.push_back(line);
    else
      for (const std::string& match : matches_in(line, quoted)) pieces.push_back(match);
  }
  return found_in(pieces, command);
}

// The rooms: folders of the library and of the programs, each with a README of its own. The book has its own texts.
std::set<std::string> rooms() {
  std::set<std::string> folders;
  for (const Source& source : tree())
    if (source.layer() != "tests" && !source.path.starts_with("apps/book/") && !is_readers_own(source.path))
      folders.insert(source.folder());
  return folders;
}
// These READMEs are also manuals of programs: they may be longer, and name files that a user has.
bool is_manual(const std::string& folder) {
  return folder == "apps/measure/bench" || folder == "apps/install" || folder == "apps/tasks/lm" ||
         folder == "apps/tasks/translate";
}

Words all_readmes() {
  Words readmes{"README.md", "README.zh.md", "tests/README.md"};
  for (const std::string& folder : rooms())
    if (!is_manual(folder)) readmes.push_back(folder + "/README.md");
  return readmes;
}

// The promises by their numbers: the lines between one heading, "## 5. Title", and the next.
std::map<std::string, std::string> promises() {
  static const std::regex heading("^## ([0-9]+)\\. ");
  std::map<std::string, std::string> sections;
  std::string number;
  for (const std::string& line : lines_of("tests/promises/README.md")) {
    if (std::smatch match; std::regex_search(line, match, heading)) number = match[1];
    if (!number.empty()) sections[number] += line + '\n';
  }
  return sections;
}

}  // namespace

TEST_CASE("code in the README is taken from the files it links, line by line; so it is in Chinese") {
  for (const std::string readme : {"README.md", "README.zh.md"}) {
    size_t excerpts = 0;
    for (const Block& block : parse_text(lines_of(readme)).blocks) {
      if (block.language != "cpp") continue;
      ++excerpts;
      CAPTURE(readme);
      CAPTURE(block.linked);
      CHECK(block.linked.starts_with("apps/book/ch"));
      CHECK(block.lines.size() >= 4);
      CHECK(missing_line(block.lines, lines_of(block.linked)) == "");
    }
    CHECK(excerpts == 2);
  }
}

TEST_CASE("the README in Chinese says no number that the English one does not say") {
  std::set<std::string> said;
  for (const auto& [number, line] : numbers_of(parse_text(lines_of("README.md")).prose)) said.insert(number);
  CHECK(said.size() >= 20);
  for (const auto& entry : numbers_of(parse_text(lines_of("README.zh.md")).prose))
    CHECK_MESSAGE(said.contains(entry.first), "README.zh.md:", entry.second, " says ", entry.first);
}

TEST_CASE("the README's table of speed says what its picture was drawn from") {
  const SpeedFigure figure = speed_figure(contents(root / "apps/data/speed.json"));
  const auto shown = [](double x) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(x >= 100 ? 0 : 1) << x;
    return out.str();
  };
  CHECK(figure.rows.size() == 8);
  for (const auto& [name, joined] : {std::pair{"README.md", " and "}, std::pair{"README.zh.md", " 和 "}}) {
    const std::string readme = contents(root / name);
    for (const SpeedRow& row : figure.rows) {
      std::ostringstream line;
      line << "| `" << row.config << "` | " << shown(row.pytorch_ms) << " | " << shown(row.orrery_ms) << " | "
           << std::fixed << std::setprecision(1) << row.pytorch_ms / row.orrery_ms << " | " << std::setprecision(0)
           << row.pytorch_mb << joined << row.orrery_mb << " MB |";
      CAPTURE(line.str());
      CHECK(readme.find(line.str()) != readme.npos);
    }
  }
}

TEST_CASE("every path that a README names exists") {
  for (const std::string& readme : all_readmes()) {
    const std::filesystem::path folder = (root / readme).parent_path();
    const std::set<std::string> paths = paths_in(lines_of(readme));
    CAPTURE(readme);
    CHECK(!paths.empty());
    for (const std::string& path : paths) {
      if (path.starts_with("apps/mine/") || path == "mine/") continue;  // the reader's own, there or not
      CAPTURE(path);
      CHECK((std::filesystem::exists(root / path) || std::filesystem::exists(folder / path)));
    }
  }
}

TEST_CASE("nn/nn.h includes every layer") {
  const Words lines = lines_of("nn/nn.h");
  const std::set<std::string> included(lines.begin(), lines.end());
  for (const Source& source : tree()) {
    if (source.folder() != "nn/layers" || !source.path.ends_with(".h")) continue;
    CHECK_MESSAGE(included.contains("#include \"" + source.path + '"'), "nn/nn.h does not include " << source.path);
  }
}

TEST_CASE("every command that a README shows is a sub-command") {
  const std::string overview = program::run("--help").text;  // which --help shows after anything else, too
  CHECK(program::run("nosuch --help").text == overview);
  for (const std::string& readme : all_readmes()) {
    const std::set<std::string> commands = commands_in(lines_of(readme));
    CAPTURE(readme);
    if (readme == "README.md") CHECK(commands.size() >= 2);
    for (const std::string& command : commands) {
      if (command == "exercise" || command == "book") continue;  // of apps/run: tests/apps/book/
      CAPTURE(command);
      const program::Result help = program::run(command + " --help");
      CHECK(help.exit_code == 0);
      CHECK(help.text != overview);
    }
  }
}

TEST_CASE("every test of a promise is named by that promise") {
  static const std::regex promise("promise ([0-9]+):");
  std::map<std::string, std::string> sections = promises();
  CHECK(sections.size() == 29);
  for (const Source& source : tree()) {
    if (!source.path.starts_with("tests/") || !source.path.ends_with("_test.cpp")) continue;
    const std::string name = source.path.substr(std::string("tests/").size());
    const std::string any = name.substr(0, name.rfind('/') + 1) + "*_test.cpp";
    for (size_t i = 0; i < source.lines.size(); ++i) {
      if (!source.lines[i].starts_with("TEST_CASE(")) continue;
      const bool wrapped = source.lines[i] == "TEST_CASE(" && i + 1 < source.lines.size();
      const std::string& line = source.lines[wrapped ? i + 1 : i];
      for (std::sregex_iterator at(line.begin(), line.end(), promise), end; at != end; ++at) {
        CAPTURE(name);
        CAPTURE((*at)[1].str());
        const std::string& text = sections[(*at)[1]];
        CHECK((text.find('`' + name + '`') != text.npos || text.find('`' + any + '`') != text.npos));
      }
    }
  }
}

TEST_CASE("every test that a promise names is one of that promise") {
  static const std::regex named("`([a-z_0-9/]*/)(\\*|[a-z_0-9]+)_test\\.cpp`");
  size_t tests = 0;
  for (const auto& [number, section] : promises()) {
    const std::string start = "TEST_CASE(\"", promise = "promise " + number + ":";
    const std::string& text = section;
    CAPTURE(promise);
    for (std::sregex_iterator at(text.begin(), text.end(), named), end; at != end; ++at) {
      const std::string folder = "tests/" + (*at)[1].str(), name = (*at)[2];
      size_t files = 0;
      for (const Source& source : tree()) {
        if (!source.path.ends_with("_test.cpp") || source.folder() + "/" != folder) continue;
        if (name != "*" && source.stem() != name + "_test") continue;
        ++files;
        CAPTURE(source.path);
        CHECK(std::any_of(source.lines.begin(), source.lines.end(), [&](const std::string& line) {
          return line.starts_with(start) && line.find(promise) != line.npos;
        }));
      }
      CAPTURE(name);
      CHECK(files > 0);
      ++tests;
    }
  }
  CHECK(tests >= 30);
}
