// Chapter 3. A loss that falls although a derivative is wrong.
// Question: does a training show that a derivative is wrong?
// Answer: no. With the wrong slope of my_op.cpp the loss falls, too. The wrong gradient still has a positive dot
//   product with the right one, so a step against it leads downhill, only not as well; the loss alone does not show it.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

struct Softsign {
  static constexpr std::string_view name = "softsign";
  template <class T> T value(T x) const { return x / (1 + std::fabs(x)); }
  template <class T> T derivative(T x) const { return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }
};
struct SquareForgotten : Softsign {
  template <class T> T derivative(T x) const { return 1 / (1 + std::fabs(x)); }
};

struct Training {
  std::vector<double> losses;  // after 0, 100, 1000 steps
  Tensor first_gradient;       // of all parameters, before the first step
};

// Fits sin(2x) on 64 points by f(x W1 + b) W2.
template <class F> Training train() {
  Rng rng(3);
  const Variable W1 = parameter(randn({1, 16}, rng, f64)), b = parameter(zeros({16}, f64)),
                 W2 = parameter(randn({16, 1}, rng, f64) * 0.25);
  Tensor x = zeros({64, 1}, f64), wanted = zeros({64, 1}, f64);
  for (i64 i = 0; i < 64; ++i) x.write<double>()[i] = static_cast<double>(i) / 16 - 2;
  for (i64 i = 0; i < 64; ++i) wanted.write<double>()[i] = std::sin(2 * x.at(i));
  optim::SGD sgd({W1, b, W2});
  Training result;
  for (int step = 0; step <= 1000; ++step) {
    const Variable error = matmul(elementwise(F{}, matmul(constant(x), W1) + b), W2) - constant(wanted);
    const Variable loss = mean(error * error);
    backward(loss);
    if (step == 0)
      result.first_gradient = concat({W1.gradient().reshape({16}), b.gradient(), W2.gradient().reshape({16})}, 0);
    if (step == 0 || step == 100 || step == 1000) result.losses.push_back(loss.item());
    sgd.step(0.1);
  }
  return result;
}

}  // namespace

int main() {
  const Training right = train<Softsign>(), wrong = train<SquareForgotten>();
  const Tensor g = right.first_gradient, d = wrong.first_gradient;
  const double cosine = dot(g, d) / std::sqrt(dot(g, g) * dot(d, d));
  std::cout << std::fixed << std::setprecision(3) << "after step            0    100   1000\n";
  for (const auto& [name, training] : {std::pair{"right slope     ", &right}, {"square forgotten", &wrong}}) {
    std::cout << name;
    for (const double loss : training->losses) std::cout << "  " << loss;
    std::cout << '\n';
  }
  std::cout << "cosine of the angle between both first gradients: " << cosine << '\n';
  return cosine > 0.5 && wrong.losses[2] < 0.5 * wrong.losses[0] ? 0 : 1;
}
