// Chapter 3. Grades every attempt at every exercise of one chapter, or at every bug:  orrery_exercises 4
//
// Each solution passes; each starter fails; each wrong answer fails, and what is expected is said of a question that
// failed. No two wrong answers are told the same: their questions, errors and hints differ in more than numbers.
// An answer that throws fails question by question, and does not end the grading.
#include "tests/apps/book/exercises.h"

#include <iostream>
#include <regex>
#include <set>
#include <sstream>

namespace orrery::book {

Exercises exercises_of(const std::string& chapter);  // written by CMake

namespace {

// What the grader says of the questions that failed.
std::string failures(const Grader& grader) {
  std::ostringstream said;
  for (const Grader::Answer& answer : grader.answers())
    if (!answer.right) said << answer;
  return said.str();
}

// The lines of a text without their numbers: what a student is told of the kind of mistake.
std::set<std::string> lines_without_numbers(const std::string& text) {
  static const std::regex number("[-+]?[0-9]+(?:\\.[0-9]+)?(?:e[-+]?[0-9]+)?");
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(std::regex_replace(line, number, "N"));
  return lines;
}

// What is wrong with one attempt's grade; "" if it is as it must be.
std::string problem(const Attempt& attempt, const Grader& grader) {
  if (grader.answers().empty()) return "nothing was asked";
  if (attempt.kind == Attempt::solution) return grader.passed() ? "" : "the solution does not pass";
  if (grader.passed()) return "passes, and must not";
  if (attempt.kind != Attempt::wrong) return "";
  const bool said = !attempt.expected.empty() && failures(grader).find(attempt.expected) != std::string::npos;
  return said ? "" : "its grade does not say \"" + attempt.expected + "\"";
}

bool grade_exercise(const Exercise& exercise) {
  std::set<std::set<std::string>> told;  // of wrong answers
  std::set<std::string> expected;
  size_t wrong = 0;
  bool ok = true;
  const auto report = [&](const std::string& file, const std::string& text) {
    std::cout << file << ": " << text << '\n';
    ok = false;
  };
  for (const Attempt& attempt : exercise.second) {
    Grader grader;
    try {
      attempt.grade(grader);
      std::ostringstream said;
      said << grader;
      if (const std::string text = problem(attempt, grader); !text.empty())
        report(attempt.file, text + "\n" + said.str());
    } catch (const std::exception& error) { report(attempt.file, std::string("the grader threw: ") + error.what()); }
    if (attempt.kind != Attempt::wrong) continue;
    ++wrong;
    if (!expected.insert(attempt.expected).second) report(attempt.file, "expects what another one does");
    if (!told.insert(lines_without_numbers(failures(grader))).second)
      report(attempt.file, "is told the same as another wrong answer, except for numbers\n" + failures(grader));
  }
  const bool bug = exercise.first.starts_with("bug.");  // its starter is the wrong answer
  if (wrong < 2 && !bug) report(exercise.first, "has fewer than two wrong answers");
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
