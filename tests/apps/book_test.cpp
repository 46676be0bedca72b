// Chapter 0. Every chapter program has its question, its answer and an exercise whose solution is tested.
#include <doctest/doctest.h>

#include <set>

#include "tests/style_source.h"

using namespace orrery::style;

namespace {

// Where a chapter's programs stand.
std::string folder_of(int chapter) { return "apps/book/ch" + std::to_string(chapter); }

Sources examples() {
  Sources result;
  std::copy_if(tree().begin(), tree().end(), std::back_inserter(result), [](const Source& source) {
    return source.folder().starts_with("apps/book/ch") && !source.folder().ends_with("/exercises");
  });
  return result;
}

// What is missing in a chapter program's name, header or length.
Words violations(const Source& example) {
  Words found;
  const std::string chapter = std::to_string(example.chapter);
  if (example.folder() != folder_of(example.chapter)) found.push_back(example.at(0) + "not the chapter of its folder");
  constexpr size_t most_lines = 80;
  if (example.lines.size() > most_lines) found.push_back(example.at(most_lines) + "too long for one look");
  Words wanted{"// Question: ", "// Answer: ", "// Exercise: "};
  for (size_t i = 1; i < example.lines.size() && example.lines[i].starts_with("//") && !wanted.empty(); ++i) {
    const bool serves = wanted.size() == 1 && example.lines[i].starts_with("// Serves: ");  // beside the main path
    if (serves || example.lines[i].starts_with(wanted[0])) wanted.erase(wanted.begin());
  }
  if (!wanted.empty()) found.push_back(example.at(0) + "the header has no \"" + wanted[0] + "\", or not in its place");
  const std::string command = "`tests/run -L ch" + chapter + "`";
  if (std::none_of(example.lines.begin(), example.lines.end(), [&](const std::string& line) {
        return line.starts_with("// Exercise: ") && line.find(command) != line.npos;
      })) {
    found.push_back(example.at(0) + "the exercise does not say " + command);
  }
  return found;
}

}  // namespace

TEST_CASE("chapters 0 to 7 have their programs, with question, answer and exercise") {
  std::set<int> chapters;
  Words found;
  for (const Source& example : examples()) {
    chapters.insert(example.chapter);
    const Words here = violations(example);
    found.insert(found.end(), here.begin(), here.end());
  }
  CHECK(report(found) == "");
  CHECK(chapters == std::set<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("each chapter's exercises are solved in a test under the chapter's label") {
  for (const Source& example : examples()) {
    const std::string chapter = std::to_string(example.chapter);
    CAPTURE(example.path);
    const Source* solution = find_source(tree(), "tests/apps/book/ch" + chapter + "_test.cpp");
    REQUIRE(solution != nullptr);
    CHECK(solution->chapter == example.chapter);
    const std::string name = "exercise " + chapter + ":";
    CHECK(std::any_of(solution->lines.begin(), solution->lines.end(), [&](const std::string& line) {
      return line.starts_with("TEST_CASE(") && line.find(name) != line.npos;
    }));
  }
}

TEST_CASE("a program without an answer, or with another chapter's label, is found") {
  const std::string head = "// Chapter 3. A.\n// Question: a?\n";
  const auto violations_of = [&](const std::string& rest) {
    return violations(make_source(folder_of(3) + "/a.cpp", head + rest)).size();
  };
  CHECK(violations_of("// Answer: b.\n// Exercise: c; `tests/run -L ch3`.\n// Read next: d\n") == 0);
  CHECK(violations_of("// Exercise: c; `tests/run -L ch3`.\n// Read next: d\n") == 1);
  CHECK(violations_of("// Answer: b.\n// Exercise: c; `tests/run -L ch4`.\n// Read next: d\n") == 1);
  CHECK(violations(make_source(folder_of(4) + "/a.cpp",
                               head + "// Answer: b.\n// Exercise: c; `tests/run -L ch3`.\n// Read next: d\n"))
            .size() == 1);
}
