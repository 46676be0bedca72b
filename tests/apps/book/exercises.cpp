// Chapter 3. Grades every attempt at every exercise of one chapter, or at every bug:  orrery_exercises 4
//
// Each solution passes; each starter fails nearly everything; each wrong answer fails, and what is expected is said of
// a question that failed. Each gets one hint, which names its kind of mistake. No two wrong answers are told the same:
// their questions and errors differ in more than numbers, and their hints, except for that of a forgotten factor.
// An answer that throws fails question by question, and does not end the grading.
#include "tests/apps/book/exercises.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>

namespace orrery::book {

Exercises exercises_of(const std::string& chapter);  // both written by CMake
std::string hint_of(const std::string& attempt);  // words of the hint that a wrong answer gets, such as "4.2_softmax_1"

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

// The one hint of a grade; "" if there is none, or another one.
std::string only_hint(const Grader& grader) {
  std::string hint;
  for (const Grader::Answer& answer : grader.answers()) {
    if (answer.hint.empty()) continue;
    if (!hint.empty()) return "";
    hint = answer.hint;
  }
  return hint;
}

bool contains(const std::string& text, const std::string& part) {
  return !part.empty() && text.find(part) != std::string::npos;
}

// What is wrong with one attempt's grade; "" if it is as it must be.
std::string problem(const Attempt& attempt, const Grader& grader) {
  if (grader.answers().empty()) return "nothing was asked";
  if (attempt.kind == Attempt::solution) return grader.passed() ? "" : "the solution does not pass";
  if (grader.passed()) return "passes, and must not";
  const auto right = std::count_if(grader.answers().begin(), grader.answers().end(), [](auto& a) { return a.right; });
  const bool bug = contains(attempt.file, "/bugs/");  // only its mistake is missing
  if (attempt.kind == Attempt::starter && !bug && 3 * static_cast<size_t>(right) > grader.answers().size())
    return "the starter passes more than a third";
  if (only_hint(grader).empty()) return "it has not one hint";
  if (attempt.kind != Attempt::wrong) return "";
  if (!contains(failures(grader), attempt.expected)) return "its grade does not say \"" + attempt.expected + "\"";
  const std::string hint = hint_of(std::filesystem::path(attempt.file).stem());
  return contains(only_hint(grader), hint) ? "" : "its hint does not say \"" + hint + "\"";
}

bool grade_exercise(const Exercise& exercise) {
  std::set<std::set<std::string>> told;  // of wrong answers
  std::set<std::string> expected, hints;
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
    if (const std::string hint = only_hint(grader); !contains(hint, "forgotten factor") && !hints.insert(hint).second)
      report(attempt.file, "has the hint of another wrong answer: " + hint);
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
