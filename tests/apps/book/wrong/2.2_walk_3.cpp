// Chapter 2. A wrong answer to exercise 2.2: gradients of the walk before are left in place.
// Expect: the number is 10, should be 2
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
  tape[y.line].gradient = 1;
  for (size_t i = y.line + 1; i-- > 0;)
    for (const Line::Input& input : tape[i].inputs) tape[input.line].gradient += tape[i].gradient * input.slope;
}
