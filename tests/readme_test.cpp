// Chapter 9. The README and the folders' READMEs: programs, paths and commands in them are what the repository holds.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "tests/style_source.h"

using namespace orrery::style;

namespace {

// A program shown in the text: a line that names its file in backticks, then a block of C++.
struct Shown {
  std::string path, text;
};

std::vector<Shown> shown_programs(const Words& lines) {
  std::vector<Shown> result;
  std::string named;
  static const std::regex file("`([a-z_0-9/]+\\.cpp)`");
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] == "```cpp") {
      std::string text;
      while (++i < lines.size() && lines[i] != "```") text += lines[i] + "\n";
      result.push_back({named, text});
      named.clear();
    } else if (std::smatch match; std::regex_search(lines[i], match, file)) {
      named = match[1];
    } else if (!lines[i].empty()) {
      named.clear();
    }
  }
  return result;
}

// What a pattern's first group matches outside of blocks of C++.
std::set<std::string> found_in(const Words& lines, const std::regex& pattern) {
  std::set<std::string> result;
  bool program = false;
  for (const std::string& line : lines) {
    if (line.starts_with("```")) program = line == "```cpp";
    if (program) continue;
    for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at) result.insert((*at)[1]);
  }
  return result;
}

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
      for (std::sregex_iterator at(line.begin(), line.end(), quoted), end; at != end; ++at) pieces.push_back((*at)[1]);
  }
  return found_in(pieces, command);
}

Words lines_of(const std::string& path) { return split_lines(read_text(root / path)); }

// Folders of the library, each with a README of its own.
std::set<std::string> library_folders() {
  std::set<std::string> folders;
  for (const Source& source : tree())
    if (source.layer() != "apps" && source.layer() != "tests") folders.insert(source.folder());
  return folders;
}

Words all_readmes() {
  Words readmes{"README.md", "apps/README.md", "tests/README.md"};
  for (const std::string& folder : library_folders()) readmes.push_back(folder + "/README.md");
  return readmes;
}

}  // namespace

TEST_CASE("the README has at most 200 lines") {
  const Words lines = lines_of("README.md");
  CHECK(lines.size() >= 100);
  CHECK(lines.size() <= 200);
}

TEST_CASE("the programs in the README are byte for byte files of apps/examples/") {
  const std::vector<Shown> programs = shown_programs(lines_of("README.md"));
  REQUIRE(programs.size() == 2);
  for (const Shown& program : programs) {
    CAPTURE(program.path);
    CHECK(program.path.starts_with("apps/examples/ch"));
    CHECK(program.text == read_text(root / program.path));
  }
}

TEST_CASE("every path that a README names exists") {
  for (const std::string& readme : all_readmes()) {
    const std::filesystem::path folder = (root / readme).parent_path();
    const std::set<std::string> paths = paths_in(lines_of(readme));
    CAPTURE(readme);
    CHECK(!paths.empty());
    for (const std::string& path : paths) {
      CAPTURE(path);
      CHECK((std::filesystem::exists(root / path) || std::filesystem::exists(folder / path)));
    }
  }
}

TEST_CASE("every folder of the library has a README of at most 40 lines that names each of its files") {
  constexpr size_t most_lines = 40;
  for (const std::string& folder : library_folders()) {
    const Words lines = lines_of(folder + "/README.md");
    CAPTURE(folder);
    CHECK(!lines.empty());
    if (folder != "nn") CHECK(lines.size() <= most_lines);
    const std::set<std::string> paths = paths_in(lines);
    for (const Source& source : tree()) {
      if (source.folder() != folder) continue;
      CAPTURE(source.path);
      CHECK((paths.contains(source.stem() + ".h") || paths.contains(source.stem() + ".cpp")));
    }
  }
}

TEST_CASE("every command that a README shows is a sub-command") {
  for (const std::string& readme : all_readmes()) {
    const std::set<std::string> commands = commands_in(lines_of(readme));
    CAPTURE(readme);
    if (readme == "README.md") CHECK(commands.size() >= 2);
    for (const std::string& command : commands) {
      CAPTURE(command);
      CHECK(std::system(("'" ORRERY_PROGRAM "' " + command + " --help > /dev/null 2>&1").c_str()) == 0);
    }
  }
}

TEST_CASE("programs, paths and commands are found as they are written") {
  const Words text = split_lines(
      "See `apps/a.cpp`:\n\n```cpp\nint nn/no;\n```\nRead core/shape.h. Then `optim.h`, `ops/`.\n"
      "orrery is small; `orrery toy --seed 2`\n```\napps/run gradcheck\n```\n");
  const std::vector<Shown> programs = shown_programs(text);
  REQUIRE(programs.size() == 1);
  CHECK(programs[0].path == "apps/a.cpp");
  CHECK(programs[0].text == "int nn/no;\n");
  CHECK(paths_in(text) == std::set<std::string>{"apps/a.cpp", "apps/run", "core/shape.h", "ops/", "optim.h"});
  CHECK(commands_in(text) == std::set<std::string>{"gradcheck", "toy"});
}

TEST_CASE("every test of a promise stands in that promise's row") {
  static const std::regex promise("promise ([0-9]+):");
  std::map<std::string, std::string> rows;
  static const std::regex row("^\\| ([0-9]+) \\|");
  for (const std::string& line : lines_of("tests/promises/README.md"))
    if (std::smatch match; std::regex_search(line, match, row)) rows[match[1]] = line;
  CHECK(rows.size() >= 14);
  for (const Source& source : tree()) {
    if (!source.path.starts_with("tests/") || !source.path.ends_with("_test.cpp")) continue;
    const std::string name = source.path.substr(std::string("tests/").size());
    const std::string any = name.substr(0, name.rfind('/') + 1) + "*_test.cpp";
    for (const std::string& line : source.lines) {
      if (!line.starts_with("TEST_CASE(\"")) continue;
      for (std::sregex_iterator at(line.begin(), line.end(), promise), end; at != end; ++at) {
        CAPTURE(name);
        CAPTURE((*at)[1].str());
        const std::string& text = rows[(*at)[1]];
        CHECK((text.find('`' + name + '`') != text.npos || text.find('`' + any + '`') != text.npos));
      }
    }
  }
}
