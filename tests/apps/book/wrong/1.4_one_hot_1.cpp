// Chapter 1. A wrong answer to exercise 1.4: row and column are exchanged.
// Expect: [0, 1] is 1, should be 0
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_one_hot(const Tensor& ids, i64 words) {
  Tensor result = zeros(ids.shape().plus(words), f64);
  for (i64 i = 0; i < ids.count(); ++i) result.set(ids.data<i32>()[i] * ids.count() + i, 1);
  return result;
}

Tensor my_lookup(const Tensor& ids, const Tensor& table) { return matmul(my_one_hot(ids, table.size(0)), table); }
