// Chapter 1. A wrong answer to exercise 1.4: the axes of the ids are lost.
// Expect: the shape is [4, 2], should be [2, 2, 2]
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_one_hot(const Tensor& ids, i64 words) {
  Tensor result = zeros({ids.count(), words}, f64);
  for (i64 i = 0; i < ids.count(); ++i) result(i, ids.data<i32>()[i]) = 1;
  return result;
}

Tensor my_lookup(const Tensor& ids, const Tensor& table) { return matmul(my_one_hot(ids, table.size(0)), table); }
