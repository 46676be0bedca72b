// Chapter 2. Solution of exercise 2.6: a tape of your own.
//
// Nothing is given but what a user calls. A MyTape holds numbers, and a number is known by its place on the tape:
// - input(v) puts v on the tape; add(a, b), mul(a, b) and tanh(x) compute from numbers that are there. Each returns the
//   place of the new number, and value(place) says what stands there.
// - gradients(y) is dy/dx for every x on the tape, in the order of the tape: 1 for y itself, 0 for what y was not
//   computed from. It changes nothing, so it may be asked again, and for another y.
// Decide what a line holds besides its value, record it, and write the walk. A tape may be a million lines long.
#include <cmath>
#include <vector>

class MyTape {
 public:
  size_t input(double value) { return record(value, {}); }
  size_t add(size_t a, size_t b) { return record(value(a) + value(b), {{a, 1}, {b, 1}}); }
  size_t mul(size_t a, size_t b) { return record(value(a) * value(b), {{a, value(b)}, {b, value(a)}}); }
  size_t tanh(size_t x) {
    const double y = std::tanh(value(x));
    return record(y, {{x, 1 - y * y}});
  }
  double value(size_t place) const { return lines_.at(place).value; }

  std::vector<double> gradients(size_t y) const {
    std::vector<double> result(lines_.size(), 0);
    result.at(y) = 1;
    for (size_t i = y + 1; i-- > 0;)  // newest first: a line's gradient is complete when it passes it on
      for (const Input& input : lines_[i].inputs) result[input.place] += result[i] * input.slope;
    return result;
  }

 private:
  struct Input {
    size_t place;
    double slope;  // d(this line) / d(that line)
  };
  struct Line {
    double value;
    std::vector<Input> inputs;
  };
  std::vector<Line> lines_;  // an input stands before what is computed from it

  size_t record(double value, const std::vector<Input>& inputs) {
    lines_.push_back({value, inputs});
    return lines_.size() - 1;
  }
};
