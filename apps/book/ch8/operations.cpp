// Chapter 8. Counting a layer's multiply-adds, and the numbers from memory that they need.
// Question: where does the arithmetic of an encoder layer go, and what limits a product: the cores or memory?
// Answer: almost all goes into the products with weights: each weight is used once for each token, 3,145,728
//   multiply-adds. A large product does hundreds of operations for each number that memory brings, an addition 1/3.
#include <iomanip>
#include <iostream>

#include "nn/models/stack.h"

using namespace orrery;

namespace {

constexpr i64 d_model = 512, d_ff = 2048, n = 64, rows = 2048;

// The elements of all matrices of the paper's layer; biases and layer norms are vectors.
i64 weights_of_a_layer() {
  Rng rng(8);
  nn::EncoderLayer layer({.d_model = d_model, .num_heads = 8, .d_ff = d_ff}, rng);
  i64 weights = 0;
  for (const auto& [name, parameter] : layer.parameters())
    if (parameter.value().shape().rank() == 2) weights += parameter.value().count();
  return weights;
}

}  // namespace

int main() {
  const i64 operations = 2 * rows * d_model * d_model, numbers = 2 * rows * d_model + d_model * d_model;
  const double of_product = static_cast<double>(operations) / static_cast<double>(numbers);
  std::cout << "a product of " << rows << " rows with a " << d_model << " x " << d_model << " weight: " << operations
            << " operations on " << numbers << " numbers, " << std::fixed << std::setprecision(0) << of_product
            << " for each\nan addition of two tensors: 1 operation on 3 numbers\n\n";

  const i64 projections = 4 * d_model * d_model, feed_forward = 2 * d_model * d_ff, of_weights = weights_of_a_layer();
  const i64 attention = 2 * n * d_model;
  const double share = 100.0 * static_cast<double>(attention) / static_cast<double>(of_weights);
  std::cout << "multiply-adds of one token in one layer\n  projections   " << std::setw(8) << projections
            << "\n  feed-forward  " << std::setw(8) << feed_forward << "\n  together      " << std::setw(8)
            << projections + feed_forward << ", once each of the layer's weights\n  attention     " << std::setw(8)
            << attention << " in a sentence of " << n << " tokens, " << share << " percent of that\n\n"
            << "millions of multiply-adds of a whole attention\ntokens    scores and sums   projections   together\n";
  for (const i64 length : {128, 512, 2048, 8192}) {
    const i64 scores = 2 * length * length * d_model / 1'000'000, others = projections * length / 1'000'000;
    std::cout << std::setw(6) << length << std::setw(19) << scores << std::setw(14) << others << std::setw(11)
              << scores + others << '\n';
  }
  return projections + feed_forward == of_weights && share < 5 && of_product > 400 ? 0 : 1;
}
