// Chapter 6. A wrong answer to exercise 6.1: a query does not see itself.
// Expect: [0, 0] is 0, should be 1
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_causal_mask(i64 n, i64 m) {
  Tensor allowed = full({n, m}, 0, Dtype::i32);
  for (i64 i = 0; i < n; ++i) {
    for (i64 j = 0; j < m; ++j) allowed(i, j) = j < i + m - n ? 1 : 0;
  }
  return allowed;
}
