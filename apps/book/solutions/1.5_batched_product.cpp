// Chapter 1. Solution of exercise 1.5: products of many matrices.
//
// Multiply with loops, without matmul: c(b, i, j) is the sum over p of left(b, i, p) right(b, p, j). left is f64
// [B, m, k]; right is either [B, k, n], a matrix for each b, or [k, n], one matrix that all share. Return [B, m, n].
// Element (b, i, j) of a tensor is read as x(b, i, j), and written as x(b, i, j) = 2.5 if x is not const. Inner sizes
// that differ are an error: check(condition, "my_product", "why") throws unless the condition holds.
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_product(const Tensor& left, const Tensor& right) {
  const auto [B, m, k] = dims<3>(left, "left");
  const i64 n = right.size(-1);
  check(right.size(-2) == k, "my_product", "inner sizes differ");
  const bool shared = right.rank() == 2;
  Tensor c = zeros({B, m, n}, f64);
  for (i64 b = 0; b < B; ++b) {
    for (i64 i = 0; i < m; ++i) {
      for (i64 j = 0; j < n; ++j) {
        double total = 0;
        for (i64 p = 0; p < k; ++p) total += left(b, i, p) * (shared ? right(p, j) : right(b, p, j));
        c(b, i, j) = total;
      }
    }
  }
  return c;
}
