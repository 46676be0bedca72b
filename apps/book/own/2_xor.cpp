// Chapter 9. Milestone own.2: XOR, and why one layer stops at 75 %.
//
// Two inputs, each 1 or -1; the answer is 1 where they differ. One neuron says tanh(z), z = u x + v y + w. Opposite
// corners of the square have equal answers, and their z add up to 2 w, on either diagonal. So z cannot be positive at
// both ends of one diagonal and negative at both ends of the other: one corner of four stays wrong. Two layers can do
// it, on the tape of 2.6.
#include "apps/book/own/show.h"

namespace own {
using mine_2_6::MyTape;

const std::vector<Point> corners{{1, 1, -1}, {-1, -1, -1}, {1, -1, 1}, {-1, 1, 1}};

// A hidden layer of tanh, then one neuron; that one alone if `hidden` is 0.
struct Network {
  size_t hidden;
  std::vector<double> weights;

  Network(size_t units, u64 seed) : hidden(units), weights(units == 0 ? 3 : 4 * units + 1) {
    Rng rng(seed);
    for (double& weight : weights) weight = rng.normal();
  }
  // A tape that begins with the weights.
  MyTape tape() const {
    MyTape result;
    for (const double weight : weights) result.input(weight);
    return result;
  }
  // The place of the answer.
  size_t answer(MyTape& tape, double a, double b) const {
    const size_t x = tape.input(a), y = tape.input(b);
    const auto neuron = [&](size_t first) {
      return tape.tanh(tape.add(tape.add(tape.mul(first, x), tape.mul(first + 1, y)), first + 2));
    };
    if (hidden == 0) return neuron(0);
    size_t z = 4 * hidden;
    for (size_t i = 0; i < hidden; ++i) z = tape.add(z, tape.mul(3 * hidden + i, neuron(3 * i)));
    return tape.tanh(z);
  }
  double operator()(double x, double y) const {
    MyTape lines = tape();
    const size_t place = answer(lines, x, y);
    return lines.value(place);
  }
  // A step on the sum of (answer - side)^2 over the four corners; returns it.
  double learn(double rate) {
    MyTape lines = tape();
    size_t loss = lines.input(0);
    for (const Point& p : corners) {
      const size_t miss = lines.add(answer(lines, p.x, p.y), lines.input(-p.side));
      loss = lines.add(loss, lines.mul(miss, miss));
    }
    const std::vector<double> gradients = lines.gradients(loss);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] -= rate * gradients.at(i);
    return lines.value(loss);
  }
};

void train(Grader& g) {
  double best = 0;
  for (u64 seed = 1; seed <= 20; ++seed) {
    Network line(0, seed);
    for (int step = 0; step < 100; ++step, line.learn(0.1)) best = std::max(best, right(line, corners));
  }
  std::cout << "one layer, 20 starts of 100 steps: at best " << percent(best) << " right; two layers:\n";
  Network network(4, 1);
  for (int step = 1; step <= 500; ++step)
    progress(step, 500, network.learn(0.1), [&] { return percent(right(network, corners)) + " right"; });
  std::cout << "\nThe square as two layers see it. No straight line could cut it like this:\n\n";
  show_plane(network, corners);
  std::cout << '\n';
  g.equal("one layer stops at 75 %", 75, "Why no straight line can do more: the top of apps/book/own/2_xor.cpp.",
          [&] { return 100 * best; });
  g.equal("two layers reach 100 %", 100, search, [&] { return 100 * right(network, corners); });
}

}  // namespace own
