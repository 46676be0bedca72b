// Chapter 2. Exercise 2.2: the walk back.
//
// The lines of this tape hold their inputs and slopes, but nothing runs it backwards yet. Fill in `run_backward(y)`:
// afterwards the gradient of every line is dy/d(line): 1 for y itself, 0 for a line that y was not computed from. It
// may be called again, for another y of the same tape.
// Grade it:  apps/run exercise 2.2
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
  tape[y.line].gradient = 1;  // YOUR CODE: where does this 1 have to go from here?
}
