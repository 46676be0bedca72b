// Chapter 1. A wrong answer to exercise 1.5: every left matrix meets the first right one.
// Expect: [1, 0, 0] is 1, should be 7
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_product(const Tensor& left, const Tensor& right) {
  const auto [B, m, k] = dims<3>(left, "left");
  const i64 n = right.size(-1);
  check(right.size(-2) == k, "my_product", "inner sizes differ");
  const Tensor first = right.rank() == 2 ? right : right.rows(0, 1).reshape({k, n});
  Tensor c = zeros({B, m, n}, f64);
  for (i64 b = 0; b < B; ++b)
    for (i64 i = 0; i < m; ++i)
      for (i64 j = 0; j < n; ++j)
        for (i64 p = 0; p < k; ++p) c(b, i, j) = c(b, i, j) + left(b, i, p) * first(p, j);
  return c;
}
