// Chapter 6. Masks as pictures, and a query that may see nothing.
// Question: which keys does each query see under a padding, a causal and a window mask, and under all three at once?
// Answer: those marked #. A query can be left without any key. Its weights, its output and its gradients are 0 then;
//   scores of -infinity in a plain softmax would give NaN, which a single step spreads over all weights.
#include <cmath>
#include <iostream>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

constexpr i64 n = 8;

void print(const std::string& name, const Mask& mask) {
  std::cout << name << '\n';
  for (i64 i = 0; i < n; ++i) {
    std::cout << "  query " << i << "  ";
    for (i64 j = 0; j < n; ++j) std::cout << (mask.allowed(0, 0, i, j, n, n) ? " #" : " .");
    std::cout << '\n';
  }
}

bool all_zero(const Tensor& x) { return sum_of_squares(x) == 0; }

}  // namespace

int main() {
  const Mask padding = Mask::padding(Tensor::of<i32>({1}, {5})), causal = Mask::causal(), window = Mask::window(2);
  const Mask all = padding & causal & window;
  print("padding: 5 of 8 tokens are real", padding);
  print("causal: no query sees what comes after it", causal);
  print("window: two positions to each side", window);
  print("all three", all);

  Rng rng(6);
  const auto random = [&] { return parameter(randn({1, 1, n, 4}, rng, f64)); };
  const Variable Q = random(), K = random(), V = random();
  const AttentionResult result = attention(Q, K, V, all);
  const auto last = [](const Tensor& x) { return slice(x, 2, -1); };
  std::cout << "\nquery 7 sees no key; its weights: " << last(result.weights.value()) << '\n';
  backward(sum(result.output));
  const bool quiet = all_zero(last(result.weights.value())) && all_zero(last(result.output.value())) &&
                     all_zero(last(Q.gradient())) && std::isfinite(sum_of_squares(K.gradient()));
  std::cout << "its weights, its output and the gradient of its Q are 0: " << (quiet ? "yes" : "no") << '\n';

  const double hidden = -std::numeric_limits<double>::infinity();
  double total = 0, largest = hidden;
  for (i64 j = 0; j < n; ++j) total += std::exp(hidden - largest);
  std::cout << "plain softmax of eight scores of -infinity: "
            << (std::isnan(std::exp(hidden - largest) / total) ? "not a number" : "a number") << '\n';
  return quiet && std::isnan(total) ? 0 : 1;
}
