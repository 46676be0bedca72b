// Chapter 6. Positions: why order needs them, and why sines and cosines.
// Question: does attention know the order of its tokens, and what does a model gain from the paper's encodings?
// Answer: without positions, rows in another order come out in that order, otherwise unchanged. PE(p + k) is PE(p)
//   turned by angles that depend on k alone, so that a fixed linear map looks k positions further, from anywhere.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "core/tensor_ops.h"
#include "nn/attention/attention.h"
#include "nn/positions/positional_encoding.h"

using namespace orrery;

namespace {

double largest(const Tensor& x) { return std::sqrt(max(x * x).item()); }

// The matrix R_k with PE(p + k) = R_k PE(p) for every p: a block for each pair of columns.
Tensor rotation(i64 k, i64 d_model) {
  Tensor R = zeros({d_model, d_model}, f64);
  for (i64 c = 0; c < d_model; c += 2) {
    const double omega = std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(d_model));
    const double angle = static_cast<double>(k) * omega;
    R(c, c) = std::cos(angle);
    R(c, c + 1) = std::sin(angle);
    R(c + 1, c) = -std::sin(angle);
    R(c + 1, c + 1) = std::cos(angle);
  }
  return R;
}

void print(const std::string& name, const Tensor& row) {
  std::cout << name;
  for (i64 i = 0; i < row.count(); ++i) std::cout << std::setw(9) << row.at(i);
  std::cout << '\n';
}

}  // namespace

int main() {
  std::cout << std::fixed << std::setprecision(4);
  constexpr i64 n = 5, d_model = 8;
  Rng rng(6);
  nn::MultiHeadAttention layer(d_model, 2, rng);
  nn::to(layer, f64);
  const nn::PositionalEncoding positions(nn::Positions::sinusoidal, n, d_model, rng);
  nn::Pass pass = nn::Pass::inference();
  const Variable x = constant(randn({1, n, d_model}, rng, f64)), turned = constant(flip(x.value(), 1));
  const auto change = [&](const Variable& in, const Variable& in_turned, const Mask& mask) {
    return largest(flip(layer(in, mask, pass).value(), 1) - layer(in_turned, mask, pass).value());
  };
  const double blind = change(x, turned, Mask()), told = change(positions(x), positions(turned), Mask()),
               causal = change(x, turned, Mask::causal());
  const auto answer = [](double change) { return change < 1e-12 ? "yes" : "no"; };
  std::cout << "last row first, without positions: the same rows come out, " << answer(blind)
            << "\nwith positions: " << answer(told) << "; without, under a causal mask: " << answer(causal) << "\n\n";

  const Tensor small = nn::sinusoidal_table(6, 4), R2 = rotation(2, 4);
  print("PE(3)    ", small.rows(3, 4));
  print("PE(5)    ", small.rows(5, 6));
  print("R_2 PE(3)", matmul(small.rows(3, 4), R2, Trans::b));
  for (i64 i = 0; i < 4; ++i) print(i == 0 ? "R_2      " : "         ", R2.rows(i, i + 1));

  constexpr i64 count = 200, columns = 64;
  const Tensor PE = nn::sinusoidal_table(count, columns);
  double off = 0;
  for (i64 k = 0; k < count; ++k)
    off = std::max(off, largest(PE.rows(k, count) - matmul(PE.rows(0, count - k), rotation(k, columns), Trans::b)));
  std::cout << "\nPE(p + k) = R_k PE(p) for every p + k < 200 and 64 columns: " << (off < 1e-12 ? "yes" : "no") << '\n';

  const double length = dot(PE.rows(7, 8), PE.rows(7, 8));
  std::cout << "PE(7) . PE(7) = " << length << ", half of the 64 columns\n";
  const bool as_said = blind < 1e-12 && told > 0.01 && causal > 0.01 && off < 1e-12;
  return as_said && std::fabs(length - columns / 2) < 1e-12 ? 0 : 1;
}
