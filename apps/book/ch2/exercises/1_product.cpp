// Chapter 2. Exercise 2.1: products and quotients.
//
// The tape of chapter 2 (apps/book/ch2/scalar_tape.cpp) can add. Teach it y = a b and y = a / b: a new line holds
// the value, and for each input its line and the slope dy/d(input).
// Grade it:  apps/run exercise 2.1
#include <vector>

// One number on the tape: its value, and its slope with respect to each number that it was computed from.
struct Line {
  struct Input {
    size_t line;
    double slope;
  };
  double value;
  std::vector<Input> inputs;
  double gradient = 0;
};
using Tape = std::vector<Line>;

struct Number {
  Tape* tape;
  size_t line;
  double value() const { return (*tape)[line].value; }
  double gradient() const { return (*tape)[line].gradient; }
};

Number record(Tape& tape, double value, const std::vector<Line::Input>& inputs = {}) {
  tape.push_back({value, inputs});
  return {&tape, tape.size() - 1};
}

Number operator+(Number a, Number b) { return record(*a.tape, a.value() + b.value(), {{a.line, 1}, {b.line, 1}}); }

Number operator*(Number a, Number b) {
  return record(*a.tape, a.value() * b.value(), {{a.line, 1}, {b.line, 1}});  // YOUR CODE: these are not the slopes
}

Number operator/(Number a, Number b) {
  return record(*a.tape, a.value() / b.value(), {{a.line, 1}, {b.line, 1}});  // YOUR CODE: these are not the slopes
}

// dy/d(line) for every line of the tape.
void run_backward(Number y) {
  Tape& tape = *y.tape;
  for (Line& line : tape) line.gradient = 0;
  tape[y.line].gradient = 1;
  for (size_t i = y.line + 1; i-- > 0;)
    for (const Line::Input& input : tape[i].inputs) tape[input.line].gradient += tape[i].gradient * input.slope;
}
