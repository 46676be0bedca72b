// Chapter 3. The exercises of the book as the tests see them: each solution, starter and wrong answer, graded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "apps/book/grade/grader.h"

namespace orrery::book {

/// One file of an exercise.
struct Attempt {
  enum Kind { solution, starter, wrong, throwing } kind;  ///< throwing: a starter whose blanks throw
  std::string file;                                       ///< from the root of the repository
  std::string expected;                                   ///< of a wrong answer: what its grade says
  void (*grade)(Grader&);
};

/// An exercise's number and name, such as "4.2_softmax", and the attempts at it.
using Exercise = std::pair<std::string, std::vector<Attempt>>;
/// What one function for each chapter returns, which CMake writes (tests/apps/book/exercises.cmake).
using Exercises = std::vector<Exercise>;

}  // namespace orrery::book
