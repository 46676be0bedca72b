// Chapter 3. Asking, comparing and printing.
//
// Serves: autograd/check/proof.h
#include "apps/book/grade/grader.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "core/tensor_ops.h"

namespace orrery::book {
namespace {

bool agrees(double got, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected)) return got == expected;
  return std::fabs(got - expected) <= tolerance * std::max(1.0, std::fabs(expected));
}

std::string digits(double number, int precision) {
  std::ostringstream out;
  out.precision(precision);
  out << (std::isnan(number) ? std::fabs(number) : number);  // nan, never -nan
  return out.str();
}

// " is 0.5, should be 0.25", with as many digits as tell the two apart.
std::string other_number(double got, double expected) {
  constexpr int short_precision = 9, whole_precision = 17;
  const bool told_apart = digits(got, short_precision) != digits(expected, short_precision);
  const int precision = told_apart ? short_precision : whole_precision;
  return " is " + digits(got, precision) + ", should be " + digits(expected, precision);
}

// "[1, 2]" for an element in row order.
std::string place(i64 index, const Shape& shape) {
  if (shape.rank() == 0) return "the number";
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(index % shape[axis]) + (text.empty() ? "" : ", ") + text;
    index /= shape[axis];
  }
  return "[" + text + "]";
}

std::string difference(const Tensor& got, const Tensor& expected, double tolerance) {
  std::ostringstream out;
  if (!got.defined()) return "there is no tensor";
  if (got.shape() != expected.shape()) {
    out << "the shape is " << got.shape() << ", should be " << expected.shape();
  } else if (got.dtype() != expected.dtype()) {
    out << "the dtype is " << got.dtype() << ", should be " << expected.dtype();
  } else {
    for (i64 i = 0; i < got.count(); ++i)
      if (!agrees(got.at(i), expected.at(i), tolerance))
        return place(i, got.shape()) + other_number(got.at(i), expected.at(i));
  }
  return out.str();
}

}  // namespace

void Grader::ask(std::string question, const std::function<std::string()>& wrong, std::string hint) {
  std::string what;
  try {
    what = wrong();
  } catch (const std::exception& error) { what = std::string("an error: ") + error.what(); } catch (...) {
    what = "an error that is no std::exception";
  }
  const bool right = what.empty();
  answers_.push_back({std::move(question), right, std::move(what), right ? "" : std::move(hint)});
  if (live_) *live_ << answers_.back() << std::flush;
}

void Grader::check(std::string question, const std::function<bool()>& right, std::string hint) {
  ask(
      std::move(question), [&] { return right() ? "" : "no"; }, std::move(hint));
}

void Grader::equal(std::string question, const std::function<double()>& number, double expected, std::string hint,
                   double tolerance) {
  const auto wrong = [&] {
    const double got = number();
    return agrees(got, expected, tolerance) ? "" : "the number" + other_number(got, expected);
  };
  ask(std::move(question), wrong, std::move(hint));
}

void Grader::at_most(std::string question, const std::function<double()>& number, double bound, std::string hint) {
  const auto wrong = [&] {
    const double got = number();
    return got <= bound ? "" : "the number is " + digits(got, 9) + ", should be at most " + digits(bound, 9);
  };
  ask(std::move(question), wrong, std::move(hint));
}

void Grader::equal(std::string question, const std::function<Tensor()>& tensor, const Tensor& expected,
                   std::string hint, double tolerance) {
  ask(
      std::move(question), [&] { return difference(tensor(), expected, tolerance); }, std::move(hint));
}

void Grader::prove(std::string question, const std::function<Sample()>& sample, std::string hint) {
  const auto wrong = [&] {
    const Proof proof = orrery::prove(sample(), {.mutants = false});
    return proof ? "" : proof.message();
  };
  ask(std::move(question), wrong, std::move(hint));
}

void Grader::no_leak(std::string question, const std::function<nn::LeakCheck()>& check, std::string hint) {
  const auto wrong = [&]() -> std::string {
    const nn::LeakReport report = nn::leakcheck(check());
    std::ostringstream matrix;
    matrix << "#: moves   .: does not move, and must not   -: does not move, but may   X: leak\n" << report;
    return report.ok() ? "" : matrix.str();
  };
  ask(std::move(question), wrong, std::move(hint));
}

void Grader::gradients(std::string question, const std::function<Checkable()>& function, std::string hint) {
  const auto wrong = [&] {
    const GradcheckReport report = gradcheck(function());
    return report ? "" : report.message;
  };
  ask(std::move(question), wrong, std::move(hint));
}

bool Grader::passed() const {
  return !answers_.empty() && std::all_of(answers_.begin(), answers_.end(), [](const Answer& a) { return a.right; });
}

std::string Grader::count() const {
  const auto right = std::count_if(answers_.begin(), answers_.end(), [](const Answer& a) { return a.right; });
  return std::to_string(right) + " of " + std::to_string(answers_.size()) + " passed";
}

std::ostream& operator<<(std::ostream& out, const Grader::Answer& answer) {
  out << (answer.right ? "passed  " : "FAILED  ") << answer.question << '\n';
  if (answer.right) return out;
  std::istringstream lines(answer.what);
  for (std::string line; std::getline(lines, line);) out << "        " << line << '\n';
  return out << "        hint: " << answer.hint << '\n';
}

std::ostream& operator<<(std::ostream& out, const Grader& grader) {
  for (const Grader::Answer& answer : grader.answers()) out << answer;
  return out << grader.count() << '\n';
}

int grade_program(void (*grade)(Grader&)) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // also into a pipe: what the student's code prints before a crash is seen
  Grader grader(&std::cout);
  try {
    grade(grader);
  } catch (const std::exception& error) {  // from the student's code, called outside of a question
    std::cout << "FAILED  an error ended the grading: " << error.what() << '\n';
    return 1;
  }
  std::cout << grader.count() << '\n';
  return grader.passed() ? 0 : 1;
}

}  // namespace orrery::book
