// Chapter 0. Every chapter program has its question and its answer.
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
  if (example.folder() != folder_of(example.chapter)) found.push_back(example.at(0) + "not the chapter of its folder");
  constexpr size_t most_lines = 85;
  if (example.lines.size() > most_lines) found.push_back(example.at(most_lines) + "too long for one look");
  Words wanted{"// Question: ", "// Answer: "};
  for (size_t i = 1; i < example.lines.size() && example.lines[i].starts_with("//") && !wanted.empty(); ++i)
    if (example.lines[i].starts_with(wanted[0])) wanted.erase(wanted.begin());
  if (!wanted.empty()) found.push_back(example.at(0) + "the header has no \"" + wanted[0] + "\", or not in its place");
  return found;
}

}  // namespace

TEST_CASE("chapters 0 to 9 have their programs, with question and answer") {
  std::set<int> chapters;
  Words found;
  for (const Source& example : examples()) {
    chapters.insert(example.chapter);
    const Words here = violations(example);
    found.insert(found.end(), here.begin(), here.end());
  }
  CHECK(report(found) == "");
  for (int chapter = 0; chapter <= 9; ++chapter) CHECK(chapters.contains(chapter));
}

TEST_CASE("a program without an answer, or in another chapter's folder, is found") {
  const std::string head = "// Chapter 3. A.\n// Question: a?\n";
  const auto violations_of = [&](int chapter, const std::string& rest) {
    return violations(make_source(folder_of(chapter) + "/a.cpp", head + rest)).size();
  };
  CHECK(violations_of(3, "// Answer: b.\n// Read next: d\n") == 0);
  CHECK(violations_of(3, "// Read next: d\n") == 1);
  CHECK(violations_of(3, "\n// Answer: b.\n") == 1);
  CHECK(violations_of(4, "// Answer: b.\n// Read next: d\n") == 1);
  CHECK(violations_of(3, "// Answer: b.\n" + std::string(83, '\n')) == 1);
}
