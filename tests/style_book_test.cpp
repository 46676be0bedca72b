// Chapter 0. The rules of the house for the reader: chapter headers, the spine, rooms.
#include <doctest/doctest.h>

#include <map>
#include <regex>
#include <set>

#include "tests/style_source.h"

using namespace orrery::style;

namespace {

constexpr std::string_view read_next = "// Read next: ";
const std::string last_word = "the end";

// The spine: the files that a reader reads in order, as the table in apps/README.md lists them.
struct Spine {
  Words files;
  std::vector<int> chapters;  // of each file
};

// Rows "| 4 | `autograd/ops/matmul.cpp`, ... |" of a table.
Spine spine_in(const std::string& text) {
  static const std::regex row("^\\| ([0-9]+) \\| (`.*`) \\|$"), file("`([^`]+)`");
  Spine spine;
  for (const std::string& line : split_lines(text)) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    const std::string files = match[2];
    for (std::sregex_iterator at(files.begin(), files.end(), file), end; at != end; ++at) {
      spine.files.push_back((*at)[1]);
      spine.chapters.push_back(std::stoi(match[1]));
    }
  }
  return spine;
}

Spine spine() { return spine_in(orrery::contents(root / "apps/README.md")); }

// The number of lines of the comment that a file opens with.
size_t header_length(const Source& source) {
  size_t n = 0;
  while (n < source.lines.size() && source.lines[n].starts_with("//")) ++n;
  return n;
}

// The last line of that comment.
std::string last_header_line(const Source& source) {
  const size_t n = header_length(source);
  return n > 0 ? source.lines[n - 1] : "";
}

// Every file of the library and the programs opens with its chapter; one of the spine also names the next.
Words header_violations(const Sources& sources, const Spine& spine) {
  Words found;
  for (const Source& source : sources) {
    if (source.layer() == "tests") continue;
    if (source.chapter < 0) found.push_back(source.at(0) + "line 1 is not \"// Chapter N. What the file is.\"");
    const auto place = std::find(spine.files.begin(), spine.files.end(), source.path);
    if (place == spine.files.end()) continue;
    const std::string next = place + 1 == spine.files.end() ? last_word : *(place + 1);
    if (last_header_line(source) != std::string(read_next) + next)
      found.push_back(source.at(std::max<size_t>(header_length(source), 1) - 1) + "the header does not end with \"" +
                      std::string(read_next) + next + "\"");
    if (source.chapter != spine.chapters[static_cast<size_t>(place - spine.files.begin())])
      found.push_back(source.at(0) + "the spine has this file in another chapter");
  }
  return found;
}

// What a reader has read at the end of each file of the spine, in lines. Budgets: the whole, and how soon a reader
// meets the tape and the product, attention, and the Transformer.
Words spine_violations(const Sources& sources, const Spine& spine) {
  constexpr size_t least_files = 40, most_files = 50, most_lines = 7000;
  static const std::vector<std::pair<std::string, size_t>> budgets{{"autograd/engine.cpp", 1500},
                                                                   {"autograd/ops/matmul.cpp", 1500},
                                                                   {"autograd/ops/softmax.cpp", 1500},
                                                                   {"nn/attention/attention.h", 3000},
                                                                   {"nn/models/transformer.h", 4000}};
  Words found;
  std::map<std::string, size_t> read;
  size_t lines = 0;
  for (const std::string& path : spine.files) {
    const Source* source = find_source(sources, path);
    if (!source) found.push_back("the spine lists " + path + ", which is not a source file");
    if (read.contains(path)) found.push_back("the spine lists " + path + " twice");
    if (source) read[path] = lines += source->lines.size();
  }
  if (spine.files.size() < least_files || spine.files.size() > most_files)
    found.push_back("the spine has " + std::to_string(spine.files.size()) + " files");
  if (lines > most_lines) found.push_back("the spine has " + std::to_string(lines) + " lines");
  if (!std::is_sorted(spine.chapters.begin(), spine.chapters.end())) found.push_back("the chapters are out of order");
  for (const auto& [path, budget] : budgets) {
    if (!read.contains(path))
      found.push_back("the spine does not hold " + path);
    else if (read[path] > budget)
      found.push_back(path + " ends at line " + std::to_string(read[path]) + " of the spine, later than " +
                      std::to_string(budget));
  }
  return found;
}

// A folder that one sees at a glance has at most 20 sources; a header and its .cpp are one, and so are all files that
// are called by their numbers (apps/book/bugs/7.cpp).
Words crowded_folders(const Sources& sources) {
  constexpr size_t most_sources = 20;
  std::map<std::string, std::set<std::string>> stems;
  for (const Source& source : sources)
    if (source.layer() != "tests")
      stems[source.folder()].insert(
          source.stem().find_first_not_of("0123456789") == source.stem().npos ? "a number" : source.stem());
  Words found;
  for (const auto& [folder, names] : stems)
    if (names.size() > most_sources) found.push_back(folder + " has " + std::to_string(names.size()) + " sources");
  return found;
}

}  // namespace

TEST_CASE("every source opens with its chapter, and one of the spine with what to read next") {
  CHECK(report(header_violations(tree(), spine())) == "");
  const Spine two{{"nn/a.h", "nn/b.h"}, {5, 6}};
  CHECK(
      report(header_violations({make_source("nn/a.h", "// Chapter 6. A.\n// Read next: nn/c.h\n")}, two)) ==
      "\nnn/a.h:2: the header does not end with \"// Read next: nn/b.h\"\nnn/a.h:1: the spine has this file in another "
      "chapter");
}

TEST_CASE("the spine keeps to its budget of files and lines") {
  CHECK(report(spine_violations(tree(), spine())) == "");
}

TEST_CASE("no folder has more than 20 sources") { CHECK(report(crowded_folders(tree())) == ""); }

// Budgets go down. Raise one only with a reason in the commit.
TEST_CASE("the house keeps to its weight") {
  size_t lines = 0, name_gpt = 0, files = 0;
  for (const Source& source : tree()) {
    lines += source.lines.size();
    const bool counts = source.layer() != "tests" && !source.path.starts_with("apps/book/");
    name_gpt += counts && std::any_of(source.lines.begin(), source.lines.end(),
                                      [](const std::string& line) { return line.find("Gpt") != line.npos; });
  }
  for (const std::string layer : {"core", "autograd", "nn", "optim", "apps", "tests"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / layer))
      files += entry.is_regular_file() && entry.path().extension() != ".md" &&
               !is_readers_own(entry.path().lexically_relative(root).generic_string());
  CHECK(lines <= 109'756);
  CHECK(files <= 1'033);  // without texts: a long one is easier to read in parts
  CHECK(name_gpt <= 6);
  CHECK(find_source(tree(), "autograd/node.h")->lines.size() <= 70);
  CHECK(split_lines(orrery::contents(root / "CMakeLists.txt")).size() <= 100);
}

TEST_CASE("a task is one file of at most 250 lines") {
  int tasks = 0;
  for (const Source& source : tree()) {
    const std::string command = "void add_" + source.stem() + "(CLI::App& program, int& exit_code) {";
    if (source.folder() != "apps/tasks" ||
        std::none_of(source.lines.begin(), source.lines.end(),
                     [&](const std::string& line) { return line.starts_with(command); }))
      continue;
    ++tasks;
    CAPTURE(source.path);
    CHECK(source.lines.size() <= 250);
  }
  CHECK(tasks >= 6);
}

TEST_CASE("the reader's own files keep no rules, and CMake does not look for them") {
  CHECK(is_readers_own("apps/mine/4.2_softmax.cpp"));
  CHECK_FALSE(is_readers_own("apps/mine.cpp"));
  CHECK(std::none_of(tree().begin(), tree().end(), [](const Source& source) { return is_readers_own(source.path); }));
  for (const char* file : {"CMakeLists.txt", "apps/programs.cmake"}) {
    for (const std::string& line : split_lines(orrery::contents(root / file))) {
      CAPTURE(line);
      CHECK_FALSE((line.find("GLOB_RECURSE") != line.npos && line.find("apps/") != line.npos));
    }
  }
  const Words lines = split_lines(orrery::contents(root / "apps/programs.cmake"));
  const std::string left_out = "list(FILTER program_folders EXCLUDE REGEX \"/(book|mine)$\")";
  CHECK(std::find(lines.begin(), lines.end(), left_out) != lines.end());
}
