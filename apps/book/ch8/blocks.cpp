// Chapter 8. A matrix product in blocks: the same multiplications, fewer numbers read.
// Question: why is a product that keeps a block of C in registers many times faster than three plain loops?
// Answer: a block of r x c sums reads r + c numbers for r c multiply-adds. One sum alone reads two for each; a block of
//   6 x 64 reads 70 for 384, and every sum is still added up in the order of the inner index.
#include <iomanip>
#include <iostream>
#include <vector>

#include "apps/book/measured.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

constexpr i64 m = 48, n = 128, k = 64, size = 256;

// Counts what is read from it.
struct Matrix {
  const Tensor& x;
  mutable i64 reads = 0;
  double operator()(i64 i, i64 j) const {
    ++reads;
    return x(i, j);
  }
};

// C in blocks of r x c. What stands in `sums`, `left` and `right` would be in registers.
Tensor product(const Matrix& a, const Matrix& b, i64 r, i64 c) {
  Tensor result = zeros({m, n}, f64);
  for (i64 i = 0; i < m; i += r)
    for (i64 j = 0; j < n; j += c) {
      std::vector<double> sums(static_cast<size_t>(r * c)), right(static_cast<size_t>(c));
      for (i64 p = 0; p < k; ++p) {
        for (i64 y = 0; y < c; ++y) right[static_cast<size_t>(y)] = b(p, j + y);
        for (i64 x = 0; x < r; ++x) {
          const double left = a(i + x, p);
          for (i64 y = 0; y < c; ++y) sums[static_cast<size_t>(x * c + y)] += left * right[static_cast<size_t>(y)];
        }
      }
      for (i64 x = 0; x < r; ++x)
        for (i64 y = 0; y < c; ++y) result.write<double>()[(i + x) * n + j + y] = sums[static_cast<size_t>(x * c + y)];
    }
  return result;
}

// Three plain loops.
void plain_product(const Tensor& left, const Tensor& right, Tensor& result) {
  const float *a = left.data<float>(), *b = right.data<float>();
  float* c = result.write<float>();
  for (i64 i = 0; i < size; ++i)
    for (i64 j = 0; j < size; ++j) {
      float sum = 0;
      for (i64 p = 0; p < size; ++p) sum += a[i * size + p] * b[p * size + j];
      c[i * size + j] = sum;
    }
}

}  // namespace

int main() {
  Rng rng(8);
  const Tensor A = randint(-9, 10, {m, k}, rng).to(f64), B = randint(-9, 10, {k, n}, rng).to(f64);
  const Tensor expected = matmul(A, B);
  bool equal = true;
  std::cout << "48 x 128, k = 64: " << m * n * k << " multiply-adds\n  block   reads  a multiply-add\n"
            << std::fixed << std::setprecision(3);
  for (const auto& [r, c] : {std::pair<i64, i64>{1, 1}, {2, 2}, {4, 4}, {6, 64}}) {
    const Matrix a{A}, b{B};
    equal &= same_bits(product(a, b, r, c), expected);
    const i64 reads = a.reads + b.reads;
    std::cout << "  " << r << " x " << std::left << std::setw(3) << c << std::right << std::setw(7) << reads
              << std::setw(8) << static_cast<double>(reads) / (m * n * k) << '\n';
  }
  std::cout << "every block gives the same product: " << (equal ? "yes" : "no") << '\n';

  constexpr i64 multiply_adds = size * size * size;
  const Tensor left = randn({size, size}, rng), right = randn({size, size}, rng);
  Tensor result = zeros({size, size});
  const auto rate = [&](double ms) { return 2e-6 * multiply_adds / ms; };
  std::cout << "measured: " << multiply_adds << " multiply-adds in three plain loops: "
            << rate(book::shortest_ms([&] { plain_product(left, right, result); })) << " GF/s; in the library: "
            << rate(book::shortest_ms([&] { matmul_into(result, left, right, Trans::none, false); })) << " GF/s\n";
  return equal ? 0 : 1;
}
