// Chapter 6. Two heads by hand: three tokens, four features, numbers small enough for a calculator.
// Question: what is computed, number by number, when two heads look at three tokens, and what comes back?
// Answer: each head picks features to ask with, to be found by, and to hand over: its Q, K, V. Scores, weights and sums
//   follow; heads stand side by side, and W^O mixes them. On the way back dO is cut into heads; four equations lead
//   through each, products with x^T make the gradients of its matrices, and dx is the sum of all ways.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

const double factor = 1 / std::sqrt(2.0);

void print(const std::string& name, const Tensor& x) {
  for (i64 i = 0; i < x.size(0); ++i) {
    std::cout << (i == 0 ? name : std::string(name.size(), ' '));
    for (i64 j = 0; j < x.size(1); ++j) std::cout << std::setw(9) << x(i, j);
    std::cout << '\n';
  }
}

Variable shown(const std::string& name, const Variable& x) {
  print(name, x.value());
  return x;
}

void show_gradient(const std::string& name, const Tensor& by_hand, const Variable& p) {
  print(name, by_hand);
  check(sum_of_squares(p.gradient() - by_hand) < 1e-24, "heads", "backward gives another", name);
}

struct Head {
  Variable WQ, WK, WV, Q, K, V, P, O;
};

Head attend(const Variable& x, const Variable& WQ, const Variable& WK, const Variable& WV) {
  std::cout << "one head\n";
  const Variable Q = shown("  Q      ", matmul(x, WQ)), K = shown("  K      ", matmul(x, WK));
  const Variable V = shown("  V      ", matmul(x, WV)), S = shown("  scores ", matmul(Q, K, Trans::b) * factor);
  shown("  e^score", exp(S));
  const Variable P = shown("  weights", softmax(S)), O = shown("  output ", matmul(P, V));
  return {WQ, WK, WV, Q, K, V, P, O};
}

// Shows the gradients of a head's matrices, from dO of its output, and returns what it adds to dx.
Tensor back_through(const Head& head, const Tensor& x, const Tensor& dO) {
  std::cout << "back through one head\n";
  const Tensor Q = head.Q.value(), K = head.K.value(), V = head.V.value(), P = head.P.value();
  const Tensor dV = matmul(P, dO, Trans::a);
  const Tensor dP = matmul(dO, V, Trans::b);
  const Tensor dS = P * (dP - sum(dP * P, {-1}, true));
  const Tensor dQ = matmul(dS, K) * factor, dK = matmul(dS, Q, Trans::a) * factor;
  print("  dP row 2", dP.rows(2, 3));
  print("  dS row 2", dS.rows(2, 3));
  print("  dQ row 2", dQ.rows(2, 3));
  show_gradient("  dW^Q", matmul(x, dQ, Trans::a), head.WQ);
  show_gradient("  dW^K", matmul(x, dK, Trans::a), head.WK);
  show_gradient("  dW^V", matmul(x, dV, Trans::a), head.WV);
  const Tensor WQ = head.WQ.value(), WK = head.WK.value(), WV = head.WV.value();
  return matmul(dQ, WQ, Trans::b) + matmul(dK, WK, Trans::b) + matmul(dV, WV, Trans::b);
}

}  // namespace

int main() {
  std::cout << std::fixed << std::setprecision(4);
  const Variable x = parameter(Tensor::of<double>({3, 4}, {1, 0, 2, 0, 0, 2, 0, 1, 1, 1, 1, 1}));
  // Each column of a weight picks a feature: 0, 1 or 2, 3. W^O adds and subtracts what both heads hand over.
  const auto low = [] { return parameter(Tensor::of<double>({4, 2}, {1, 0, 0, 1, 0, 0, 0, 0})); };
  const auto high = [] { return parameter(Tensor::of<double>({4, 2}, {0, 0, 0, 0, 1, 0, 0, 1})); };
  const Variable WO = parameter(Tensor::of<double>({4, 4}, {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, -1, 0, 0, 1, 0, -1}));
  const Head first = attend(x, low(), low(), high()), second = attend(x, high(), low(), low());
  const Variable O = shown("side by side", concat({first.O, second.O}, -1)), y = shown("times W^O   ", matmul(O, WO));

  const Tensor dy = Tensor::of<double>({3, 4}, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  backward(y, dy);  // L is the first number of the last token's y
  show_gradient("dW^O", matmul(O.value(), dy, Trans::a), WO);
  const Tensor dO = matmul(dy, WO.value(), Trans::b), from_first = back_through(first, x.value(), slice(dO, 1, 0, 2));
  show_gradient("dx", from_first + back_through(second, x.value(), slice(dO, 1, 2, 4)), x);
}
