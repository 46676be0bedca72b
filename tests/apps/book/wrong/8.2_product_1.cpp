// Chapter 8. A wrong answer to exercise 8.2: the loops go by blocks, but every number is read where it is used.
// Expect: FAILED  at most one read for two multiply-adds
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
    for (i64 j = 0; j < n; j += block)
      for (i64 x = i; x < std::min(m, i + block); ++x)
        for (i64 y = j; y < std::min(n, j + block); ++y) {
          double sum = 0;
          for (i64 p = 0; p < k; ++p) sum += a(x, p) * b(p, y);
          c.set(x, y, sum);
        }
}
