// Chapter 2. Solution of exercise 2.2: the walk back.
//
// The lines of this tape hold their inputs and slopes, but nothing runs it backwards yet. Fill in `run_backward(y)`:
// afterwards the gradient of every line is dy/d(line): 1 for y itself, 0 for a line that y was not computed from. It
// may be called again, for another y of the same tape.
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
  return record(*a.tape, a.value() * b.value(), {{a.line, b.value()}, {b.line, a.value()}});
}

void run_backward(Number y) {
  Tape& tape = *y.tape;
  for (Line& line : tape) line.gradient = 0;
  tape[y.line].gradient = 1;
  for (size_t i = y.line + 1; i-- > 0;)
    for (const Line::Input& input : tape[i].inputs) tape[input.line].gradient += tape[i].gradient * input.slope;
}
