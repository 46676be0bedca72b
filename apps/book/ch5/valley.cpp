// Chapter 5. A long valley: gradient descent, momentum and Adam on L = (x^2 + 100 y^2) / 2.
// Question: what does one learning rate do in a direction that is steep and in one that is not?
// Answer: the steep direction bounds the rate, and the flat one then hardly moves. Momentum adds up the small steps
//   that agree; Adam divides by the size of the gradient, so that both coordinates move alike.
#include <cmath>
#include <iostream>
#include <memory>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

constexpr i64 steps = 100;

Variable loss_at(const Variable& position) {
  const Variable steepness = constant(Tensor::of<double>({2}, {1, 100}));
  return sum(steepness * position * position) * 0.5;
}

// Runs from (1, 1) and returns the loss where it ends.
template <class MakeOptimizer> double descend(const char* name, double rate, const MakeOptimizer& make) {
  const Variable position = parameter(Tensor::of<double>({2}, {1, 1}), "position");
  const auto optimizer = make(optim::ParameterGroups{position});
  for (i64 step = 1; step <= steps; ++step) {
    backward(loss_at(position));
    optimizer->step(rate);
  }
  std::cout << name << ", step " << steps << ": " << position.value() << '\n';
  return loss_at(position).item();
}

}  // namespace

int main() {
  using namespace optim;
  std::cout.precision(3);
  const auto sgd = [](const ParameterGroups& p) { return std::make_unique<SGD>(p); };
  const auto momentum = [](const ParameterGroups& p) { return std::make_unique<SGD>(p, SGDOptions{.momentum = 0.9}); };
  const auto adam = [](const ParameterGroups& p) { return std::make_unique<Adam>(p); };
  const double too_fast = descend("SGD, rate 0.021", 0.021, sgd), slow = descend("SGD, rate 0.018", 0.018, sgd);
  const double with_momentum = descend("momentum, rate 0.018", 0.018, momentum);
  const double with_adam = descend("Adam, rate 0.05", 0.05, adam);
  std::cout << "losses after " << steps << " steps: " << too_fast << ", " << slow << ", " << with_momentum << ", "
            << with_adam << "\n\n";

  const Variable a = parameter(Tensor::of<double>({1}, {0}), "a"), b = parameter(Tensor::of<double>({1}, {0}), "b");
  backward(sum(a * 3.0 + b * 4.0));
  const double norm = clip_grad_norm({{"a", a}, {"b", b}}, 1.0);
  std::cout << "gradients 3 and 4 have norm " << norm << "; clipped to 1 they are " << a.gradient().item() << " and "
            << b.gradient().item() << '\n';
  const bool clipped = norm == 5 && std::fabs(a.gradient().item() - 0.6) < 1e-6;
  return too_fast > 1 && with_momentum < slow / 100 && with_adam < slow && clipped ? 0 : 1;
}
