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
  void (*grade)(Grader&);
};

/// Each exercise's attempts, by its number and name: "4.2_softmax". One function for each chapter, written by CMake.
using Exercise = std::pair<std::string, std::vector<Attempt>>;
using Exercises = std::vector<Exercise>;

}  // namespace orrery::book
