// Chapter 8. Exercise 8.2: a product in blocks.
//
// Compute c = a b, with sizes m x k and k x n, and read each matrix less often: keep a block of sums, and for each
// inner index read a few numbers of a and of b once, and multiply each with each. a(i, p) and b(p, j) read a number,
// and are counted; c(i, j) is set with c.set(i, j, value). Sizes need not be multiples of a block. Reach at most one
// read for two multiply-adds where all sizes are 24.
// Grade it:  apps/run exercise 8.2
#include <algorithm>

#include "core/tensor_ops.h"

using namespace orrery;

struct Matrix {
  Tensor x;
  mutable i64 reads = 0;
  double operator()(i64 i, i64 j) const {
    ++reads;
    return x(i, j);
  }
  void set(i64 i, i64 j, double value) { x.write<double>()[i * x.size(1) + j] = value; }
};

void my_product(const Matrix& a, const Matrix& b, Matrix& c, i64 m, i64 n, i64 k) {
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      c.set(i, j, a(i, 0) * b(0, j));  // YOUR CODE: one of k products, and each number is read anew
    }
}
