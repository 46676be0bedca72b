// Chapter 6. Solution of exercise 6.1: a causal mask.
//
// Write the table of a causal mask for n queries and m keys, i32 [n, m]: 1 where the query may attend to the key, 0
// where it may not. The last query stands beside the last key, so that query i stands at position i + m - n. A query
// sees the key at its own position and all keys before it.
//
// With n = m this is the mask of training; with n = 1 that of a token appended to m - 1 earlier ones.
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_causal_mask(i64 n, i64 m) {
  Tensor allowed = full({n, m}, 0, Dtype::i32);
  for (i64 i = 0; i < n; ++i) {
    for (i64 j = 0; j < m; ++j) allowed(i, j) = j <= i + m - n ? 1 : 0;
  }
  return allowed;
}
