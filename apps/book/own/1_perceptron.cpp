// Chapter 9. Milestone own.1: a perceptron.
//
// One neuron learns on which side of a line points lie: z = u x + v y + w, squeezed to z / (1 + |z|), between -1 and 1.
// Its numbers stand on the tape of 2.1, and 2.2 walks it back.
#include "apps/book/own/show.h"

namespace own {
using mine_2_1::Number;

std::vector<Point> draw(size_t count, u64 seed) {
  Rng rng(seed);
  std::vector<Point> points;
  while (points.size() < count) {
    const double x = 2 * rng.uniform() - 1, y = 2 * rng.uniform() - 1, height = 0.9 * x - 0.5 * y + 0.2;
    if (std::fabs(height) > 0.05) points.push_back({x, y, height > 0 ? 1.0 : -1.0});
  }
  return points;
}

// Walks the tape of 2.1 with the walk of 2.2, whose lines are of the same kind.
void walk(Number loss) {
  mine_2_2::Tape copy;
  for (const mine_2_1::Line& line : *loss.tape) {
    copy.push_back({line.value, {}});
    for (const auto& input : line.inputs) copy.back().inputs.push_back({input.line, input.slope});
  }
  run_backward(mine_2_2::Number{&copy, loss.line});
  for (size_t i = 0; i < copy.size(); ++i) (*loss.tape)[i].gradient = copy[i].gradient;
}

struct Perceptron {
  double u = 0, v = 0, w = 0;
  double operator()(double x, double y) const { return u * x + v * y + w; }

  // One step of gradient descent on the mean of (answer - side)^2; returns it.
  double learn(const std::vector<Point>& points, double rate) {
    mine_2_1::Tape tape;
    const auto number = [&](double value) { return record(tape, value); };
    const Number U = number(u), V = number(v), W = number(w);
    Number loss = number(0);
    for (const Point& p : points) {
      const Number z = U * number(p.x) + V * number(p.y) + W, size = z * number(z.value() < 0 ? -1 : 1);
      const Number miss = z / (number(1) + size) + number(-p.side);
      loss = loss + miss * miss / number(static_cast<double>(points.size()));
    }
    walk(loss);
    u -= rate * U.gradient();
    v -= rate * V.gradient();
    w -= rate * W.gradient();
    return loss.value();
  }
};

void train(Grader& g) {
  const std::vector<Point> points = draw(60, 1), exam = draw(200, 2);
  Perceptron neuron;
  for (int step = 1; step <= 1000; ++step)
    progress(step, 1000, neuron.learn(points, 2),
             [&] { return percent(right(neuron, points)) + " of its points right"; });
  std::cout << "\nThe plane as the neuron sees it, and the points from which it learned:\n\n";
  show_plane(neuron, points);
  std::cout << '\n';
  g.at_most("of 200 new points, at most 3 are on the wrong side", 3, search,
            [&] { return std::round(200 * (1 - right(neuron, exam))); });
}

}  // namespace own
