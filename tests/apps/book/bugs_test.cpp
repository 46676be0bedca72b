// Chapter 9. Tests of the programs that a student repairs: each makes the mistake of the zoo that has its number. And
// tests of the text that teaches the hunt.
#include <doctest/doctest.h>

#include <sstream>

#include "apps/book/grade/prelude.h"
#include "apps/check/bug_numbers.h"
#include "tests/apps/run_program.h"
#include "tests/text.h"

namespace worked_example {
#include "apps/book/bugs/0.cpp"
#include "apps/book/bugs/0_grade.h"
}  // namespace worked_example

using namespace orrery::style;

namespace {

const std::string bugs_folder = "apps/book/bugs/";

// The code of a copy that it shares with the zoo: all that stands within a struct or a function. What `apply` is
// called with is the copy's own.
Words shared_code(const Source& copy) {
  Words lines;
  for (const std::string& line : copy.code)
    if (line.starts_with("  ") && !stripped(line).empty() && !stripped(line).starts_with("return apply("))
      lines.push_back(stripped(line));
  return lines;
}

const Source& source_of(const std::string& path) {
  const Source* source = find_source(tree(), path);
  REQUIRE_MESSAGE(source != nullptr, path);
  return *source;
}

}  // namespace

TEST_CASE("at least ten copies, each with the zoo's code and its mistake, a grader and a solution without it") {
  int copies = 0;
  for (size_t i = 0; i < orrery::numbered_bugs().size(); ++i) {
    const orrery::NumberedBug& bug = orrery::numbered_bugs()[i];
    const std::string number = std::to_string(i + 1);
    CAPTURE(number);
    const std::string path = bugs_folder + number + ".cpp", solution = "apps/book/solutions/bug_" + number + ".cpp";
    CHECK((find_source(tree(), path) != nullptr) == bug.to_repair);
    CHECK((find_source(tree(), solution) != nullptr) == bug.to_repair);
    if (!bug.to_repair) continue;
    ++copies;
    const Source& copy = source_of(path);
    CHECK(copy.lines[0].starts_with("// Chapter " + std::to_string(bug.chapter) + ". Bug " + number + ": "));
    const Words shared = shared_code(copy);
    CHECK(shared.size() >= 2);
    CHECK(missing_line(shared, stripped(source_of(bug.file).code)) == "");
    const auto holds = [&](const Source& source) {
      return std::any_of(source.lines.begin(), source.lines.end(),
                         [&](const std::string& line) { return line.find(bug.code) != line.npos; });
    };
    CHECK(holds(copy));
    CHECK_FALSE(holds(source_of(solution)));
    source_of(bugs_folder + number + "_grade.h");  // it exists
    // The name of the bug would give the mistake away.
    for (const std::string& line : copy.lines) CHECK(line.find(bug.name) == line.npos);
  }
  CHECK(copies >= 10);
  const std::string book = orrery::contents(root / "apps/book/README.md");
  CHECK(book.find("has " + std::to_string(orrery::numbered_bugs().size()) + " programs") != book.npos);
  CHECK(book.find("in " + std::to_string(copies) + " of them") != book.npos);
}

TEST_CASE("code that is not the zoo's is found") {
  const Source zoo = make_source("zoo.cpp", "struct A {\n  int a;  // one\n  int b;\n};\n");
  const auto missing = [&](const std::string& text) {
    return missing_line(shared_code(make_source("copy.cpp", text)), stripped(zoo.code));
  };
  CHECK(missing("struct B {\n  int a;\n  int b;  // two\n};\nint f() {\n  return apply(B{});\n}\n") == "");
  CHECK(missing("struct A {\n  int b;\n  int a;\n};\n") == "int a;");
  CHECK(missing("struct A {\n  int c;\n};\n") == "int c;");
}

TEST_CASE("the text shows the worked example's code, and what its grader says") {
  constexpr size_t most_lines = 120;
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
    CHECK(missing_line(part, stripped(source_of(file).lines)) == "");
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
