// Chapter 5. A small network learns to tell two spirals apart.
// Question: can two linear maps with a nonlinearity between them separate two spirals, which no straight line can?
// Answer: yes: 600 steps of Adam put at least 195 of 200 points on the right side, a linear map alone fewer than 140.
// Read next: core/mask.h
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <numbers>
#include <vector>

#include "autograd/check/first_nan.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/layers/linear.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

struct Network : nn::Module {
  nn::Linear linear1, linear2;
  Network(i64 hidden, Rng& rng) : linear1(2, hidden, rng), linear2(hidden, 2, rng) {}
  Variable operator()(const Variable& x) const { return linear2(tanh(linear1(x))); }
  void visit(nn::Visitor& v) override {
    v("linear1", linear1);
    v("linear2", linear2);
  }
};

constexpr i64 count = 200;

// Point i belongs to spiral i mod 2; the second spiral is the first one rotated by half a circle.
void draw_spirals(Tensor& points, Tensor& labels) {
  float* xy = points.write<float>();
  i32* label = labels.write<i32>();
  for (i64 i = 0; i < count; ++i) {
    const double radius = 0.1 + 0.9 * static_cast<double>(i) / count;
    const double angle = 8 * radius + std::numbers::pi * static_cast<double>(i % 2);
    xy[2 * i] = static_cast<float>(2 * radius * std::cos(angle));
    xy[2 * i + 1] = static_cast<float>(2 * radius * std::sin(angle));
    label[i] = static_cast<i32>(i % 2);
  }
}

// Trains any layer from [B, 2] to [B, 2] and returns how many points it gets right.
template <class Layer> i64 train(Layer& layer, const Variable& x, const Tensor& labels, i64 steps) {
  optim::Adam adam(layer.parameters());
  std::vector<double> norms;
  for (i64 step = 1; step <= steps; ++step) {
    const auto forward = [&] { return cross_entropy(layer(x), labels); };
    const Variable loss = forward();
    backward(loss);
    check_finite(loss.item(), adam.parameters(), forward);
    norms.push_back(adam.step(optim::warmup_cosine(step, 0.03, 50, steps), 1.0));
    if (step % 200 == 0) std::cout << "  step " << step << "  loss " << loss.item() << '\n';
  }
  std::sort(norms.begin(), norms.end());
  std::cout << std::setprecision(2) << "  norm of the gradient: median " << norms[norms.size() / 2] << ", largest "
            << norms.back() << std::setprecision(6) << '\n';
  const NoGradient no_gradient;
  const Tensor guess = argmax(layer(x).value());
  i64 right = 0;
  for (i64 i = 0; i < count; ++i) right += guess.at(i) == labels.at(i);
  return right;
}

}  // namespace

int main() {
  Rng rng(5);
  Tensor points = zeros({count, 2}), labels = full({count}, 0, Dtype::i32);
  draw_spirals(points, labels);
  Network network(32, rng);
  nn::Linear line(2, 2, rng);
  std::cout << network << "\ntwo linear maps with tanh between them:\n";
  const i64 right = train(network, constant(points), labels, 600);
  std::cout << "  right: " << right << " of " << count << "\na linear map alone:\n";
  const i64 right_of_line = train(line, constant(points), labels, 600);
  std::cout << "  right: " << right_of_line << " of " << count << '\n';
  return right >= 195 && right_of_line < 140 ? 0 : 1;
}
