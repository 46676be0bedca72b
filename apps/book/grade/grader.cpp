// Chapter 3. Asking, comparing and printing.
//
// Serves: autograd/check/proof.h
#include "apps/book/grade/grader.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <sstream>

#include "core/tensor_ops.h"

namespace orrery::book {
namespace {

bool agrees(double got, double expected, double tolerance) {
  return std::fabs(got - expected) <= tolerance * std::max(1.0, std::fabs(expected)) ||
         (std::isnan(got) && std::isnan(expected)) || got == expected;
}

std::string other_number(double got, double expected) {
  std::ostringstream out;
  out.precision(9);
  out << " is " << got << ", should be " << expected;
  return out.str();
}

// "[1, 2]" for an element in row order.
std::string place(i64 index, const Shape& shape) {
  std::string text;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    text = std::to_string(index % shape[axis]) + (text.empty() ? "" : ", ") + text;
    index /= shape[axis];
  }
  return "[" + text + "]";
}

double element(const Tensor& x, i64 index) {
  return x.dtype() == Dtype::i32 ? static_cast<double>(x.data<i32>()[index]) : x.at(index);
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
      if (!agrees(element(got, i), element(expected, i), tolerance))
        return place(i, got.shape()) + other_number(element(got, i), element(expected, i));
  }
  return out.str();
}

}  // namespace

void Grader::ask(std::string question, const std::function<std::string()>& wrong, std::string hint) {
  std::string what;
  try {
    what = wrong();
  } catch (const std::exception& error) { what = std::string("an error: ") + error.what(); }
  const bool right = what.empty();
  answers_.push_back({std::move(question), right, std::move(what), right ? "" : std::move(hint)});
}

void Grader::check(std::string question, const std::function<bool()>& right, std::string hint) {
  ask(std::move(question), [&] { return right() ? "" : "no"; }, std::move(hint));
}

void Grader::equal(std::string question, const std::function<double()>& number, double expected, std::string hint,
                   double tolerance) {
  const auto wrong = [&] {
    const double got = number();
    return agrees(got, expected, tolerance) ? "" : "the number" + other_number(got, expected);
  };
  ask(std::move(question), wrong, std::move(hint));
}

void Grader::equal(std::string question, const std::function<Tensor()>& tensor, const Tensor& expected,
                   std::string hint, double tolerance) {
  ask(std::move(question), [&] { return difference(tensor(), expected, tolerance); }, std::move(hint));
}

void Grader::prove(std::string question, const std::function<Sample()>& sample, std::string hint) {
  const auto wrong = [&] {
    const Proof proof = orrery::prove(sample(), {.mutants = false});
    return proof ? "" : proof.message();
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

std::ostream& operator<<(std::ostream& out, const Grader& grader) {
  i64 right = 0;
  for (const Grader::Answer& answer : grader.answers()) {
    right += answer.right;
    out << (answer.right ? "passed  " : "FAILED  ") << answer.question << '\n';
    if (answer.right) continue;
    std::istringstream lines(answer.what);
    for (std::string line; std::getline(lines, line);) out << "        " << line << '\n';
    out << "        hint: " << answer.hint << '\n';
  }
  return out << right << " of " << grader.answers().size() << " passed\n";
}

int grade_program(void (*grade)(Grader&)) {
  Grader grader;
  grade(grader);
  std::cout << grader;
  return grader.passed() ? 0 : 1;
}

}  // namespace orrery::book
