// Chapter 5. Muon by hand, and against Adam where some directions are rare.
// Question: what does Muon do to a gradient matrix, and what is it good for?
// Answer: it brings all lengths (singular values) of the matrix near 1. So what is asked for rarely, and has a short
//   part of the gradient, is learned soon, too: after 30 steps Muon knows nearly all of 128 facts, Adam some 100.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "optim/optim.h"

using namespace orrery;

namespace {

// One step of the iteration, for a single length s.
double iterated(double s) { return 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5); }

// A diagonal matrix has its lengths on the diagonal, and stays diagonal.
bool lengths_by_hand() {
  const double norm = std::hypot(3, 0.3);
  double first = 3 / norm, second = 0.3 / norm;
  std::cout << std::fixed << std::setprecision(3) << "step  of length 3  of length 0.3\n";
  for (int step = 0;; first = iterated(first), second = iterated(second), ++step) {
    std::cout << "   " << step << std::setw(12) << first << std::setw(15) << second << '\n';
    if (step == 5) break;
  }
  const Tensor O = optim::nearest_orthogonal(Tensor::of<double>({2, 2}, {3, 0, 0, 0.3}));
  return std::fabs(O(0, 0) - first) < 1e-9 && std::fabs(O(1, 1) - second) < 1e-9;
}

// 128 keys of 32 numbers, each with its answer: answer j has the score v_j W k_i. Key i is asked for as often as 1 / i.
struct Facts {
  static constexpr i64 count = 128, d = 32, steps = 30;
  Tensor keys, answers, wanted = zeros({count, count}, f64);  // wanted: the share of each key, at its answer
  explicit Facts(Rng& rng) : keys(randn({count, d}, rng, f64)), answers(randn({count, d}, rng, f64)) {
    for (i64 i = 0; i < count; ++i) wanted(i, i) = 1 / static_cast<double>(i + 1);
    wanted = wanted / sum(wanted).item();
  }
  Variable scores(const Variable& W) const {
    return matmul(matmul(constant(keys), W, Trans::b), constant(answers), Trans::b);
  }
  Variable loss(const Variable& W) const { return sum(log_softmax(scores(W)) * constant(-wanted)); }  // cross entropy
};

// The loss after 30 steps, and how many facts are known.
template <class MakeOptimizer>
std::pair<double, i64> train(const Facts& facts, double rate, const MakeOptimizer& make) {
  const Variable W = parameter(zeros({Facts::d, Facts::d}, f64));
  const auto optimizer = make(Parameters{{"layers.0.weight", W}});
  for (i64 step = 1; step <= Facts::steps; ++step) {
    backward(facts.loss(W));
    optimizer->step(rate * optim::linear_cooldown(step, Facts::steps, 0));
  }
  const Tensor said = argmax(facts.scores(W).value());
  i64 known = 0;
  for (i64 i = 0; i < Facts::count; ++i) known += said.at(i) == static_cast<double>(i);
  return {facts.loss(W).item(), known};
}

}  // namespace

int main() {
  const bool agree = lengths_by_hand();
  Rng rng(5);
  const Facts facts(rng);
  const auto adam = [](const Parameters& p) { return std::make_unique<optim::Adam>(p); };
  const auto muon = [](const Parameters& p) {
    return std::make_unique<optim::Muon>(p, optim::MuonOptions{.weight_decay = 0});
  };
  std::cout << std::setprecision(2) << "\n           Adam: loss  known   Muon: loss  known\n";
  i64 most_by_adam = 0, most_by_muon = 0;
  for (const double rate : {0.03, 0.1, 0.3, 1.0}) {
    const auto [adam_loss, adam_known] = train(facts, rate, adam);
    const auto [muon_loss, muon_known] = train(facts, rate, muon);
    most_by_adam = std::max(most_by_adam, adam_known);
    most_by_muon = std::max(most_by_muon, muon_known);
    std::cout << "rate " << rate << std::setw(12) << adam_loss << std::setw(7) << adam_known << std::setw(13)
              << muon_loss << std::setw(7) << muon_known << '\n';
  }
  return agree && most_by_muon > 120 && most_by_adam < 110 ? 0 : 1;
}
