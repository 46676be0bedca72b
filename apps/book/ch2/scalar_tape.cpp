// Chapter 2. A tape for single numbers: reverse-mode differentiation, whole.
// Question: what does it take to differentiate any formula of sums, products and tanh?
// Answer: a list of all numbers that were computed, each with its slope with respect to every input, and one
//   loop from the end of the list to its beginning.
#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

namespace {

// What the tape knows of one number: where it came from, and in the end its gradient.
struct Line {
  struct Input {
    size_t line;
    double slope;  // d(this line) / d(that line)
  };
  std::string made_by;
  double value;
  std::vector<Input> inputs;
  double gradient = 0;  // dy / d(this line)
};
using Tape = std::vector<Line>;  // in the order in which the numbers were computed

// A number on a tape. Copies mean the same number.
struct Number {
  Tape* tape;
  size_t line;
  double value() const { return (*tape)[line].value; }
  double gradient() const { return (*tape)[line].gradient; }
};

Number record(Tape& tape, const std::string& made_by, double value, const std::vector<Line::Input>& inputs = {}) {
  tape.push_back({made_by, value, inputs});
  return {&tape, tape.size() - 1};
}

Number operator+(Number a, Number b) {
  return record(*a.tape, "add", a.value() + b.value(), {{a.line, 1}, {b.line, 1}});
}
Number operator*(Number a, Number b) {
  return record(*a.tape, "mul", a.value() * b.value(), {{a.line, b.value()}, {b.line, a.value()}});
}
Number tanh(Number x) {
  const double y = std::tanh(x.value());
  return record(*x.tape, "tanh", y, {{x.line, 1 - y * y}});
}

void backward(Number y) {
  Tape& tape = *y.tape;
  for (Line& line : tape) line.gradient = 0;
  tape[y.line].gradient = 1;  // dy/dy
  for (size_t i = y.line + 1; i-- > 0;)
    for (const Line::Input& in : tape[i].inputs) tape[in.line].gradient += tape[i].gradient * in.slope;
}

void print(const std::string& title, const Tape& tape) {
  std::cout << title << std::setprecision(4) << "\n  line  made by         value  gradient\n";
  for (size_t i = 0; i < tape.size(); ++i) {
    std::string made_by = tape[i].made_by;
    for (const Line::Input& input : tape[i].inputs) made_by += ' ' + std::to_string(input.line);
    std::cout << std::setw(6) << i << "  " << std::left << std::setw(10) << made_by << std::right << std::setw(11)
              << tape[i].value << std::setw(10) << tape[i].gradient << '\n';
  }
}

}  // namespace

int main() {
  Tape product, twice, neuron;
  const Number a = record(product, "a", 2), b = record(product, "b", 3), c = record(product, "c", 4);
  backward(a * b + c);
  print("y = a b + c", product);
  const Number t = record(twice, "t", 3);
  backward(t * t + t);
  print("y = t t + t", twice);
  const Number w = record(neuron, "w", std::log(2)), x = record(neuron, "x", 2), d = record(neuron, "d", -std::log(2));
  backward(tanh(w * x + d));
  print("y = tanh(w x + d)", neuron);
  return a.gradient() == 3 && b.gradient() == 2 && c.gradient() == 1 && t.gradient() == 7 ? 0 : 1;
}
