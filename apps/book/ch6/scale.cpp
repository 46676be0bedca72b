// Chapter 6. Why scores are divided by sqrt(d_k).
// Question: how large are dot products of d_k numbers each, and what do large ones do to softmax?
// Answer: their variance is d_k, so they grow as sqrt(d_k). Large scores push softmax to one weight of almost 1, and
//   there its derivative is almost 0: nothing is learned. Divided by sqrt(d_k), scores have variance 1 for every d_k.
#include <cmath>
#include <iomanip>
#include <iostream>

#include "apps/book/measured.h"
#include "autograd/ops.h"
#include "core/mask.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

double variance(const Tensor& x) {
  const double count = static_cast<double>(x.count()), mean_of_x = sum(x).item() / count;
  return dot(x, x) / count - mean_of_x * mean_of_x;
}

Tensor weights_of(const Tensor& scores) { return softmax(constant(scores)).value(); }

// The sum of dp_i/ds_i = p_i (1 - p_i) of each row, as the mean over rows: how much softmax still answers.
double answer_to_change(const Tensor& p) { return 1 - dot(p, p) / static_cast<double>(p.size(0)); }

double mean_largest(const Tensor& p) { return mean(max(p, {-1}, false)).item(); }

}  // namespace

int main() {
  std::cout << std::fixed << std::setprecision(2);
  bool as_said = true;

  constexpr i64 rows = 1000, keys = 16;
  std::cout << "       variance of       q.k alone          q.k / sqrt(d_k)\n"
            << " d_k   q.k    / sqrt   largest  slope     largest  slope\n";
  for (const i64 d_k : {4, 16, 64, 256}) {
    Rng rng(6);
    const Tensor q = randn({rows, 1, d_k}, rng, f64), k = randn({rows, keys, d_k}, rng, f64);
    const Tensor scores = matmul(q, k, Trans::b).reshape({rows, keys});
    const Tensor scaled = scores * (1 / std::sqrt(static_cast<double>(d_k)));
    const Tensor p = weights_of(scores), p_scaled = weights_of(scaled);
    std::cout << std::setw(4) << d_k << std::setw(8) << variance(scores) << std::setw(7) << variance(scaled)
              << std::setw(9) << mean_largest(p) << std::setw(8) << answer_to_change(p) << std::setw(11)
              << mean_largest(p_scaled) << std::setw(8) << answer_to_change(p_scaled) << '\n';
    as_said &= std::fabs(variance(scaled) - 1) < 0.1 && answer_to_change(p_scaled) > 0.7;
  }

  std::cout << "\nfour scores, multiplied\n   c   p_0     p_1     p_2     p_3     dp_0/ds_0\n" << std::setprecision(4);
  const Tensor s = Tensor::of<double>({1, 4}, {1, 0, -1, -2});
  double before = 1;
  for (const int c : {1, 2, 4, 8, 16}) {
    const Tensor p = weights_of(s * c);
    const double slope = p.at(0) * (1 - p.at(0));
    std::cout << std::setw(4) << c;
    for (i64 i = 0; i < 4; ++i) std::cout << std::setw(8) << p.at(i);
    std::cout << std::setw(12) << std::setprecision(8) << slope << std::setprecision(4) << '\n';
    as_said &= slope < before;
    before = slope;
  }

  Rng rng(1);
  constexpr i64 tokens = 1024, width = 64;
  const auto ms_of = [&](i64 count) {
    const Variable head = constant(randn({1, 1, count, width}, rng));
    return book::shortest_ms([&] { attention(head, head, head, Mask()); });
  };
  std::cout << "measured: a head of " << tokens << " tokens, d_k " << width << ": " << 2 * tokens * tokens * width
            << " multiplications and " << tokens * tokens * bytes_of(f32) << " bytes of scores in " << ms_of(tokens)
            << " ms; of half as many tokens, " << ms_of(tokens / 2) << " ms\n";
  return as_said && before < 1e-6 ? 0 : 1;
}
