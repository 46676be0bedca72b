// Chapter 3. Grades every attempt at every exercise of one chapter, or at every bug:  orrery_exercises 4
//
// Each solution passes; each starter fails; each wrong answer fails with the grade that its file expects, and no two
// wrong answers of an exercise have the same grade.
#include "tests/apps/book/exercises.h"

#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

namespace orrery::book {

Exercises exercises_of(const std::string& chapter);  // written by CMake

namespace {

// What the grader must say of a wrong answer: line 2 of its file. Without such a line, what no grader says.
std::string expected_of(const std::string& file) {
  constexpr std::string_view start = "// Expect: ";
  std::ifstream in(ORRERY_SOURCE_DIR "/" + file);
  std::string line;
  std::getline(in, line), std::getline(in, line);
  return line.size() > start.size() && line.starts_with(start) ? line.substr(start.size()) : "\n\n";
}

// What is wrong with one attempt's grade; "" if it is as it must be.
std::string problem(const Attempt& attempt, const Grader& grader, const std::string& said) {
  if (grader.answers().empty()) return "nothing was asked";
  if (attempt.kind == Attempt::solution) return grader.passed() ? "" : "the solution does not pass";
  if (grader.passed()) return "passes, and must not";
  if (attempt.kind == Attempt::starter) return "";
  const std::string expected = expected_of(attempt.file);
  return said.find(expected) == said.npos ? "its grade does not say \"" + expected + "\"" : "";
}

bool grade_exercise(const Exercise& exercise) {
  std::set<std::string> wrong_answers;
  size_t wrong = 0;
  bool ok = true;
  const auto report = [&](const std::string& file, const std::string& text) {
    std::cout << file << ": " << text << '\n';
    ok = false;
  };
  for (const Attempt& attempt : exercise.second) {
    Grader grader;
    std::ostringstream said;
    try {
      attempt.grade(grader);
      said << grader;
      if (const std::string text = problem(attempt, grader, said.str()); !text.empty())
        report(attempt.file, text + "\n" + said.str());
    } catch (const std::exception& error) { report(attempt.file, std::string("the grader threw: ") + error.what()); }
    if (attempt.kind == Attempt::wrong) wrong_answers.insert(said.str()), ++wrong;
  }
  const bool bug = exercise.first.starts_with("bug.");  // its starter is the wrong answer
  if (wrong < 2 && !bug) report(exercise.first, "has fewer than two wrong answers");
  if (wrong_answers.size() < wrong) report(exercise.first, "two wrong answers are graded alike");
  std::cout << exercise.first << (ok ? ": solution passes, starter and " : ": checked with ") << wrong
            << " wrong answers" << (ok ? " fail, each its own way\n" : "\n");
  return ok;
}

}  // namespace
}  // namespace orrery::book

int main(int count, char** arguments) {
  const orrery::book::Exercises all = orrery::book::exercises_of(count == 2 ? arguments[1] : "");
  bool ok = !all.empty();
  if (all.empty()) std::cout << "usage: orrery_exercises CHAPTER, of which there are exercises, or bugs\n";
  for (const orrery::book::Exercise& exercise : all) ok &= orrery::book::grade_exercise(exercise);
  return ok ? 0 : 1;
}
