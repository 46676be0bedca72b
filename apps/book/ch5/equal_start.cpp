// Chapter 5. Why weights start random: the same network from random, from equal and from zero weights.
// Question: what does a network learn if all its weights start equal, or at 0?
// Answer: its eight units get the same gradient at every step and stay one unit, eight times; from 0 nothing but the
//   last bias gets a gradient. From random weights all units become different, and the loss falls much further.
#include <cmath>
#include <iomanip>
#include <iostream>
#include <set>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

constexpr i64 units = 8;

struct Result {
  size_t different_units;
  double loss;
};

// Fits sin(2x) on 64 points by tanh(x W1 + b1) W2 + b2, in 1000 steps.
Result train(const Tensor& first, const Tensor& second) {
  Tensor x = zeros({64, 1}, f64), wanted = zeros({64, 1}, f64);
  for (i64 i = 0; i < 64; ++i) x.write<double>()[i] = static_cast<double>(i) / 16 - 2;
  for (i64 i = 0; i < 64; ++i) wanted.write<double>()[i] = std::sin(2 * x.at(i));
  const Variable W1 = parameter(first.clone()), b1 = parameter(zeros({units}, f64)), W2 = parameter(second.clone()),
                 b2 = parameter(zeros({1}, f64));
  optim::SGD sgd({W1, b1, W2, b2});
  double last = 0;
  for (int step = 1; step <= 1000; ++step) {
    const Variable error = matmul(tanh(matmul(constant(x), W1) + b1), W2) + b2 - constant(wanted);
    const Variable loss = mean(error * error);
    last = loss.item();
    backward(loss);
    sgd.step(0.1);
  }
  const auto rounded = [](double weight) { return std::round(weight * 1e6); };
  std::set<std::pair<double, double>> different;
  for (i64 i = 0; i < units; ++i) different.insert({rounded(W1.value().at(i)), rounded(W2.value().at(i))});
  return {different.size(), last};
}

Result show(const char* start, const Tensor& first, const Tensor& second) {
  const Result result = train(first, second);
  std::cout << start << std::setw(18) << result.different_units << std::setw(8) << result.loss << '\n';
  return result;
}

}  // namespace

int main() {
  Rng rng(3);
  std::cout << std::fixed << std::setprecision(3) << "start    different units    loss\n";
  const Result random = show("random", randn({1, units}, rng, f64), randn({units, 1}, rng, f64));
  const Result equal = show("equal ", full({1, units}, 0.5, f64), full({units, 1}, 0.5, f64));
  const Result zero = show("zero  ", zeros({1, units}, f64), zeros({units, 1}, f64));
  const bool one_unit = equal.different_units == 1 && zero.different_units == 1;
  return one_unit && random.different_units == units && random.loss < equal.loss && equal.loss < zero.loss ? 0 : 1;
}
