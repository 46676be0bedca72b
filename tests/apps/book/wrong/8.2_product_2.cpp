// Chapter 8. A wrong answer to exercise 8.2: what does not fill a block is left out.
// Expect: FAILED  5 x 7, k = 3
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
  for (i64 i = 0; i + block <= m; i += block)
    for (i64 j = 0; j + block <= n; j += block) {
      double sums[block][block] = {}, right[block];
      for (i64 p = 0; p < k; ++p) {
        for (i64 y = 0; y < block; ++y) right[y] = b(p, j + y);
        for (i64 x = 0; x < block; ++x) {
          const double left = a(i + x, p);
          for (i64 y = 0; y < block; ++y) sums[x][y] += left * right[y];
        }
      }
      for (i64 x = 0; x < block; ++x)
        for (i64 y = 0; y < block; ++y) c.set(i + x, j + y, sums[x][y]);
    }
}
