// Chapter 8. Solution of exercise 8.2: a product in blocks.
//
// Compute c = a b, with sizes m x k and k x n, and read each matrix less often: keep a block of sums, and for each
// inner index read a few numbers of a and of b once, and multiply each with each. a(i, p) and b(p, j) read a number,
// and are counted; c(i, j) is set with c.set(i, j, value). Sizes need not be multiples of a block. Reach at most one
// read for two multiply-adds where all sizes are 24.
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
  constexpr i64 block = 4;
  for (i64 i = 0; i < m; i += block)
    for (i64 j = 0; j < n; j += block) {
      const i64 rows = std::min(block, m - i), columns = std::min(block, n - j);
      double sums[block][block] = {}, right[block];
      for (i64 p = 0; p < k; ++p) {
        for (i64 y = 0; y < columns; ++y) right[y] = b(p, j + y);
        for (i64 x = 0; x < rows; ++x) {
          const double left = a(i + x, p);
          for (i64 y = 0; y < columns; ++y) sums[x][y] += left * right[y];
        }
      }
      for (i64 x = 0; x < rows; ++x)
        for (i64 y = 0; y < columns; ++y) c.set(i + x, j + y, sums[x][y]);
    }
}
