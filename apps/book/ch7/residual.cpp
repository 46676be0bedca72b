// Chapter 7. What residual connections do to a deep stack.
// Question: what is left of 16 different tokens, and of the gradient, after 12 layers with and without them?
// Answer: without them every layer averages, and soon all positions hold nearly the same vector. With the paper's
//   LayerNorm(x + f(x)), or with x + f(LayerNorm(x)), each position keeps what it was, and the gradient goes through.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"
#include "nn/models/stack.h"

using namespace orrery;

namespace {

enum class Kind { none, post_norm, pre_norm };

template <class Sublayer> Variable around(Kind kind, const Variable& x, const nn::LayerNorm& norm, const Sublayer& f) {
  if (kind == Kind::none) return norm(f(x));
  if (kind == Kind::post_norm) return norm(x + f(x));
  return x + f(norm(x));
}

double length(const Tensor& x) { return std::sqrt(sum_of_squares(x)); }

// How far the vectors of different positions are from their mean, relative to their length.
double difference(const Tensor& x) { return length(x - mean(x, {1}, true)) / length(x); }

struct Measured {
  std::vector<double> differences;  // after each layer
  double gradient;                  // the length of dL/dx at the bottom, relative to that of dL/dy at the top
};

Measured measured(Kind kind) {
  constexpr i64 layers = 12, n = 16, d_model = 32;
  Rng rng(7);
  nn::Encoder encoder(layers, false, {.d_model = d_model, .num_heads = 4, .d_ff = 64, .dropout = 0}, rng);
  nn::to(encoder, f64);
  nn::Pass pass = nn::Pass::inference();
  const Variable bottom = parameter(randn({1, n, d_model}, rng, f64));
  Variable x = bottom;
  Measured result{};
  for (const nn::EncoderLayer& layer : encoder.layers) {
    x = around(kind, x, layer.norm1, [&](const Variable& in) { return layer.self_attn(in, Mask(), pass); });
    x = around(kind, x, layer.norm2, [&](const Variable& in) { return layer.feed_forward(in, pass); });
    result.differences.push_back(difference(x.value()));
  }
  const Tensor dy = randn(x.shape(), rng, f64);
  backward(x, dy);
  result.gradient = length(bottom.gradient()) / length(dy);
  return result;
}

}  // namespace

int main() {
  const Measured none = measured(Kind::none), post = measured(Kind::post_norm), pre = measured(Kind::pre_norm);
  std::cout << std::fixed << std::setprecision(3) << "difference between the positions, relative to their length\n"
            << "after layer   norm(f(x))   norm(x + f(x))   x + f(norm(x))\n";
  for (const size_t l : {2, 12})
    std::cout << std::setw(11) << l << std::setw(13) << none.differences[l - 1] << std::setw(17)
              << post.differences[l - 1] << std::setw(17) << pre.differences[l - 1] << '\n';
  std::cout << "gradient at the bottom, relative to that at the top\n"
            << std::setw(24) << none.gradient << std::setw(17) << post.gradient << std::setw(17) << pre.gradient
            << '\n';
  const bool lost = none.differences.back() < 0.05 && none.gradient < 0.1 * post.gradient;
  return lost && post.differences.back() > 0.2 && pre.differences.back() > 0.5 ? 0 : 1;
}
