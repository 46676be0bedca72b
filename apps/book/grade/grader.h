// Chapter 3. Grades an exercise of the book: asks the student's code questions, and says what passed and what failed.
//
// The file that grades an exercise, `apps/book/chN/exercises/M_name_grade.h`, has one function `void grade(Grader& g)`,
// which asks; every question stands alone, so that one wrong answer does not hide the next. A failed answer says at
// which coordinate. The first one also gives a hint of the kind of mistake, never the answer.
//   g.equal("softmax of three numbers", [] { return my_softmax(x); }, expected, "Does each row add up to 1?");
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "autograd/check/proof.h"
#include "core/tensor.h"
#include "nn/check/leakcheck.h"

namespace orrery::book {

class Grader {
 public:
  /// One question and its answer.
  struct Answer {
    std::string question;
    bool right = false;
    std::string what, hint;  ///< what is wrong, and a hint if it is the first that is wrong; empty when right
  };

  /// Each answer is printed to `live`, if there is one, as soon as it is known: what comes after it may crash.
  explicit Grader(std::ostream* live = nullptr) : live_(live) {}

  /// Right if `ask` returns true. If `ask` throws an exception, the answer is wrong and shows the exception's text,
  /// here and in all questions below.
  void check(std::string question, const std::function<bool()>& ask, std::string hint);
  /// Right if the number differs from `expected` by at most `tolerance` * max(1, |expected|).
  void equal(std::string question, const std::function<double()>& ask, double expected, std::string hint,
             double tolerance = 1e-9);
  /// Right if the number is at most `bound`.
  void at_most(std::string question, const std::function<double()>& ask, double bound, std::string hint);
  /// Right if shape and dtype are those of `expected`, and every element differs by at most `tolerance` *
  /// max(1, |element|). The first one that differs by more is named: "[1, 2] is 0.5, should be 0.25".
  /// Where all are off by one ratio, the hint is that of a forgotten factor, here and in `prove`.
  void equal(std::string question, const std::function<Tensor()>& ask, const Tensor& expected, std::string hint,
             double tolerance = 1e-9);
  /// Right if every part of the project's own proof passes (autograd/check/proof.h). The whole proof takes the place of
  /// several questions: gradients, repeated passes, shared memory, single precision. A wrong answer names the first
  /// part that failed, with its first coordinate and a question about it, and how many other parts failed too.
  void prove(std::string question, const std::function<Sample()>& ask, std::string hint);
  /// Right if no input moves an output that it must not. A wrong answer shows the matrix (nn/check/leakcheck.h).
  void no_leak(std::string question, const std::function<nn::LeakCheck()>& ask, std::string hint);
  /// Right if the gradients alone agree with the numeric ones.
  void gradients(std::string question, const std::function<Checkable()>& ask, std::string hint);

  const std::vector<Answer>& answers() const { return answers_; }
  bool passed() const;        ///< everything, and at least one question was asked
  std::string count() const;  ///< "2 of 3 passed"

 private:
  void ask(std::string question, const std::function<std::string()>& wrong, const std::function<std::string()>& hint);
  std::ostream* live_;
  std::vector<Answer> answers_;
};

/// "passed  ...", or "FAILED  ..." with what and hint.
std::ostream& operator<<(std::ostream& out, const Grader::Answer& answer);
/// Every answer, and the count.
std::ostream& operator<<(std::ostream& out, const Grader& grader);

/// An exercise as a program: grades, prints each answer at once, and returns 0 if everything passed, else 1.
int grade_program(void (*grade)(Grader&));

}  // namespace orrery::book
