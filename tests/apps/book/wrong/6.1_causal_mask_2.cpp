// Chapter 6. A wrong answer to exercise 6.1: the first query stands beside the first key.
// Expect: [0, 1] is 0, should be 1
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_causal_mask(i64 n, i64 m) {
  Tensor allowed = full({n, m}, 0, Dtype::i32);
  for (i64 i = 0; i < n; ++i) {
    for (i64 j = 0; j < m; ++j) allowed(i, j) = j <= i ? 1 : 0;
  }
  return allowed;
}
