// Chapter 9. Tests of the mistakes under numbers: all of the zoo, in a fixed order, each where it is said to be.
#include "apps/check/bug_numbers.h"

#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "tests/text.h"

using namespace orrery;
using orrery::style::find_source;
using orrery::style::tree;

namespace {

const i64 last_number = static_cast<i64>(numbered_bugs().size());

std::string text_of(void (*print)(std::ostream&, i64), i64 number) {
  std::ostringstream out;
  print(out, number);
  return out.str();
}

}  // namespace

TEST_CASE("every mistake of the zoo has one number") {
  CHECK(last_number >= 20);
  std::set<std::string> named, zoo;
  for (const NumberedBug& bug : numbered_bugs()) named.insert(bug.name);
  for (const nn::Bug& bug : nn::bug_zoo()) zoo.insert(bug.name);
  CHECK(named == zoo);
  CHECK(static_cast<i64>(named.size()) == last_number);
  for (i64 number = 1; number <= last_number; ++number) CHECK(bug_of(number).name == numbered_bug(number).name);
  CHECK_THROWS_AS(numbered_bug(0), Error);
  CHECK_THROWS_AS(numbered_bug(last_number + 1), Error);
}

TEST_CASE("the order does not follow the zoo's, in which mistakes of one kind stand together") {
  std::map<std::string, i64> place;
  for (const nn::Bug& bug : nn::bug_zoo()) place.emplace(bug.name, static_cast<i64>(place.size()));
  i64 neighbours = 0;
  for (i64 number = 1; number < last_number; ++number)
    neighbours += std::abs(place.at(numbered_bug(number).name) - place.at(numbered_bug(number + 1).name)) == 1;
  CHECK(neighbours <= 2);
}

TEST_CASE("one line of the file named holds the wrong code") {
  for (const NumberedBug& bug : numbered_bugs()) {
    CAPTURE(bug.name);
    const style::Source* source = find_source(tree(), bug.file);
    REQUIRE(source != nullptr);
    CHECK(std::count_if(source->lines.begin(), source->lines.end(),
                        [&](const std::string& line) { return line.find(bug.code) != line.npos; }) == 1);
  }
}

TEST_CASE("the list says the chapter and the difficulty of each number, and nothing that gives it away") {
  std::ostringstream out;
  list_bugs(out);
  std::map<std::string, int> difficulties;
  for (const NumberedBug& bug : numbered_bugs()) {
    CHECK(out.str().find(bug.name) == std::string::npos);
    CHECK((bug.chapter >= 1 && bug.chapter <= 7));
    ++difficulties[bug.difficulty];
  }
  CHECK(difficulties.size() == 3);
  CHECK(difficulties["easy"] + difficulties["medium"] + difficulties["hard"] == last_number);
  CHECK(out.str().starts_with(
      "bug  1  chapter 5  easy\nbug  2  chapter 6  medium  repair a copy: apps/run exercise bug.2\n"));
}

TEST_CASE("what is revealed is the mistake in words, its file and the code") {
  for (i64 number = 1; number <= last_number; ++number) {
    const NumberedBug& bug = numbered_bug(number);
    const std::string text = text_of(reveal_bug, number);
    CAPTURE(text);
    CHECK(text.starts_with("bug " + std::to_string(number) + ": " + bug.name + "\n  "));
    CHECK(text.find("  " + bug.file + ": " + bug.code + "\n") != std::string::npos);
  }
  CHECK(text_of(reveal_bug, 16).find("The derivative is written as 1 - x^2 where it is 1 - y^2.\n") !=
        std::string::npos);
}
