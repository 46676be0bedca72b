// Chapter 3. Grades an exercise of the book: asks the student's code questions, and says what passed and what failed.
//
// What grades a chapter's exercises, `apps/book/chN/exercises/grades.h`, has one function `void grade(Grader& g)` for
// each, which asks; every question stands alone, so that one wrong answer does not hide the next. A failed answer says
// at which coordinate. The first one also gives a hint of the kind of mistake, never the answer.
//   g.equal("softmax of three numbers", expected, "Does each row add up to 1?", [] { return my_softmax(x); });
#pragma once

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "autograd/check/proof.h"
#include "core/tensor.h"
#include "nn/check/leakcheck.h"

namespace orrery::book {

/// What an answer should be: every number may differ by at most `tolerance` * max(1, |number|).
template <class T> struct Expected {
  Expected(T right, double within = 1e-9) : value(std::move(right)), tolerance(within) {}
  T value;
  double tolerance;
};

/// What the grader says in another language: each English line and its translation, where N may be any number.
using Translations = std::map<std::string, std::string>;
/// The table of hints.zh.txt, if the reader's language is Chinese: if the first of LC_ALL, LC_MESSAGES, LANG that is
/// not empty begins with "zh". Else nothing.
Translations translations_for_reader();
/// A text whose lines are translated, but for those that `translations` does not have.
std::string translated(const std::string& text, const Translations& translations);
inline std::string for_reader(const std::string& text) { return translated(text, translations_for_reader()); }

class Grader {
 public:
  /// One question and its answer.
  struct Answer {
    std::string question;
    bool right = false;
    std::string what, hint;       ///< what is wrong, and a hint if it is the first that is wrong; empty when right
    std::string label = "hint:";  ///< what is printed before the hint
  };

  /// Each answer is printed to `live`, if there is one, as soon as it is known: what comes after it may crash.
  /// Lines that `translations` has not are printed in English.
  explicit Grader(std::ostream* live = nullptr, Translations translations = {})
      : live_(live), translations_(std::move(translations)) {}

  /// Right if `wrong` returns an empty text; else the text says what is wrong. If it throws an exception, the answer is
  /// wrong and shows the exception's text, here and in all questions below.
  void ask(std::string question, std::string hint, const std::function<std::string()>& wrong);
  /// Right if `ask` returns true.
  void check(std::string question, std::string hint, const std::function<bool()>& ask);
  /// Right if the number is the expected one.
  void equal(std::string question, const Expected<double>& expected, std::string hint,
             const std::function<double()>& ask);
  /// Right if the number is at most `bound`.
  void at_most(std::string question, double bound, std::string hint, const std::function<double()>& ask);
  /// Right if shape and dtype are those expected, and every element, too. The first one that is not is named: "[1, 2]
  /// is 0.5, should be 0.25". Where all are off by one ratio, the hint is that of a forgotten factor, here and in
  /// `prove`.
  void equal(std::string question, const Expected<Tensor>& expected, std::string hint,
             const std::function<Tensor()>& ask);
  /// Right if every part of the project's own proof passes (autograd/check/proof.h). The whole proof takes the place of
  /// several questions: gradients, repeated passes, shared memory, single precision. A wrong answer names the first
  /// part that failed, with its first coordinate and a question about it, and how many other parts failed too.
  void prove(std::string question, std::string hint, const std::function<Sample()>& ask);
  void prove(std::string question, std::string hint, const Sample& sample);
  /// Right if no input moves an output that it must not. A wrong answer shows the matrix (nn/check/leakcheck.h).
  void no_leak(std::string question, std::string hint, const std::function<nn::LeakCheck()>& ask);
  /// Right if the gradients alone agree with the numeric ones.
  void gradients(std::string question, std::string hint, const std::function<Checkable()>& ask);

  const std::vector<Answer>& answers() const { return answers_; }
  bool passed() const;        ///< everything, and at least one question was asked
  std::string count() const;  ///< "2 of 3 passed"

 private:
  void ask(std::string question, const std::function<std::string()>& hint, const std::function<std::string()>& wrong);
  std::ostream* live_;
  Translations translations_;
  std::vector<Answer> answers_;
};

/// "passed  ...", or "FAILED  ..." with what and hint.
std::ostream& operator<<(std::ostream& out, const Grader::Answer& answer);
/// Every answer, and the count.
std::ostream& operator<<(std::ostream& out, const Grader& grader);

/// An exercise as a program: grades, prints each answer at once, and returns 0 if everything passed, else 1.
int grade_program(void (*grade)(Grader&));

}  // namespace orrery::book
