// Chapter 6. Attention by hand, a mask, and what positions do.
// Question: what does a head compute, what does it see under a causal mask, and how does it know the order?
// Answer: softmax(Q K^T / sqrt(d_k)) V. Computed head by head, it equals MultiHeadAttention to the last digits. Under
//   a causal mask, row i has weights only up to column i. PE(p) . PE(q) depends on p - q alone, so it gives a distance.
// Read next: nn/models/stack.h
#include <cmath>
#include <iostream>

#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "nn/positions/positional_encoding.h"

using namespace orrery;

namespace {

double largest(const Tensor& x) { return std::sqrt(max(x * x).item()); }

// The paper's formula for one sequence x [n, d_model]: W^Q, W^K, W^V of head i are rows of in_proj.weight.
Tensor by_hand(const nn::MultiHeadAttention& layer, const Tensor& x) {
  const i64 h = layer.num_heads, d_k = layer.d_k;
  const Tensor W = layer.in_proj.weight.value();
  std::vector<Tensor> heads;
  for (i64 i = 0; i < h; ++i) {
    const auto project = [&](i64 part) {
      const i64 first = (part * h + i) * d_k;
      return matmul(x, W.rows(first, first + d_k), Trans::b);
    };
    const Tensor Q = project(0), K = project(1), V = project(2);
    const Tensor scores = matmul(Q, K, Trans::b) * (1 / std::sqrt(static_cast<double>(d_k)));
    heads.push_back(matmul(softmax(constant(scores)).value(), V));
  }
  return matmul(concat(heads, -1), layer.out_proj.weight.value(), Trans::b);
}

}  // namespace

int main() {
  const i64 n = 5, d_model = 8, num_heads = 2;
  Rng rng(6);
  nn::MultiHeadAttention layer(d_model, num_heads, rng);  // biases start at 0
  nn::to(layer, f64);
  nn::Pass pass = nn::Pass::inference();
  const Tensor x = randn({1, n, d_model}, rng, f64);
  const Tensor y = layer(constant(x), Mask(), pass).value();
  const double difference = largest(y.reshape({n, d_model}) - by_hand(layer, x.reshape({n, d_model})));
  std::cout << "by hand against MultiHeadAttention: largest difference " << difference << "\n\n";

  nn::AttentionRecorder seen;
  pass.recorder = &seen;
  layer(constant(x), Mask::causal(), pass);
  const Tensor weights = seen.of(layer);  // [1, h, n, n]
  std::cout << "what head 0 looks at under a causal mask\n" << weights.reshape({num_heads, n, n}).rows(0, 1) << "\n\n";
  double future = 0;
  for (i64 i = 0; i < n; ++i) {
    for (i64 j = i + 1; j < n; ++j) future += weights.at(i * n + j);
  }

  const Tensor PE = nn::sinusoidal_table(20, 32), products = matmul(PE, PE, Trans::b);
  std::cout << "PE(p) . PE(p + k) for k = 0, ..., 19\n  from p = 0:";
  double unequal = 0;
  for (i64 k = 0; k < 20; ++k) {
    std::cout << ' ' << std::lround(10 * products.at(k)) / 10.0;
    for (i64 p = 0; p + k < 20; ++p)
      unequal = std::max(unequal, std::fabs(products.at(p * 20 + p + k) - products.at(k)));
  }
  std::cout << "\n  from any other p: different by at most " << unequal << '\n';
  return difference < 1e-12 && future == 0 && unequal < 1e-12 ? 0 : 1;
}
