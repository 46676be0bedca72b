// Chapter 9. Tests of the programs that a student repairs: each makes the mistake of the zoo that has its number. And
// tests of the text that teaches the hunt.
#include <doctest/doctest.h>

#include <sstream>

#include "apps/book/grade/prelude.h"
#include "apps/check/bugs.h"
#include "tests/apps/run_program.h"
#include "tests/text.h"

#define EXERCISE 0
namespace worked_example {
#include "apps/book/bugs/0.cpp"
#include "apps/book/bugs/grades.h"
}  // namespace worked_example

using namespace orrery::style;

namespace {

const std::string bugs_folder = "apps/book/bugs/";

const Source& source_of(const std::string& path) {
  const Source* source = find_source(tree(), path);
  REQUIRE_MESSAGE(source != nullptr, path);
  return *source;
}

}  // namespace

TEST_CASE("at least ten copies, each with its mistake, a grader and a solution without it") {
  int copies = 0;
  for (size_t i = 0; i < orrery::numbered_bugs().size(); ++i) {
    const orrery::NumberedBug& bug = orrery::numbered_bugs()[i];
    const std::string number = std::to_string(i + 1), path = bugs_folder + number + ".cpp";
    CAPTURE(number);
    CHECK((find_source(tree(), path) != nullptr) == bug.to_repair());
    if (!bug.to_repair()) continue;
    ++copies;
    CHECK(bug.file == path);
    const Source& copy = source_of(path);
    CHECK(copy.lines[0].starts_with("// Chapter " + std::to_string(bug.chapter) + ". Bug " + number + ": "));
    const std::string solution = orrery::contents(ORRERY_BUILD_FOLDER "/tests/exercises/bug_" + number + ".cpp");
    CHECK(solution.find(copy.lines[0]) != solution.npos);
    CHECK(solution.find(bug.code) == solution.npos);
    // The name of the bug would give the mistake away.
    for (const std::string& line : copy.lines) CHECK(line.find(bug.name) == line.npos);
  }
  CHECK(copies >= 10);
  const std::string book = orrery::contents(root / "apps/book/README.md");
  CHECK(book.find("has " + std::to_string(orrery::numbered_bugs().size()) + " programs") != book.npos);
  CHECK(book.find("in " + std::to_string(copies) + " of them") != book.npos);
}

TEST_CASE("the text shows the worked example's code, and what its grader says") {
  constexpr size_t most_lines = 121;
  const Words lines = split_lines(orrery::contents(root / (bugs_folder + "README.md")));
  CHECK(lines.size() <= most_lines);
  for (const std::string& line : lines) CHECK_MESSAGE(columns_of(line) <= 110, line);
  orrery::book::Grader grader;
  worked_example::grade(grader);
  CHECK_FALSE(grader.passed());
  std::ostringstream said;
  said << grader;
  size_t outputs = 0, excerpts = 0;
  for (const Block& block : parse_text(lines).blocks) {
    Words part;
    for (const std::string& line : block.lines)
      if (stripped(line) != "...") part.push_back(stripped(line));
    if (block.language == "text") {
      ++outputs;
      CHECK(missing_line(part, stripped(split_lines(said.str()))) == "");
    }
    if (block.language != "cpp") continue;
    ++excerpts;
    const std::string file = (std::filesystem::path(bugs_folder) / block.linked).lexically_normal();
    Words quoted = split_lines(orrery::contents(root / file));
    for (std::string& line : quoted)
      if (file.ends_with(".diff") && line.starts_with('+')) line[0] = ' ';
    CHECK(missing_line(part, stripped(quoted)) == "");
  }
  CHECK(outputs >= 1);
  CHECK(excerpts >= 2);
}

TEST_CASE("the text's commands are those of the program, and name bugs that there are") {
  for (const Block& block : parse_text(split_lines(orrery::contents(root / (bugs_folder + "README.md")))).blocks) {
    if (block.language != "sh") continue;
    for (const std::string& line : block.lines) {
      const std::string command = stripped(line.substr(0, line.find('#')));
      CAPTURE(command);
      const std::string graded = "apps/run exercise bug.", program = "apps/run gradcheck";
      if (command.starts_with(graded))
        source_of(bugs_folder + command.substr(graded.size()) + ".cpp");
      else if (command.starts_with(program))
        CHECK(orrery::program::run(command.substr(std::string("apps/run ").size())).exit_code == 0);
      else
        CHECK(command == "");
    }
  }
}
