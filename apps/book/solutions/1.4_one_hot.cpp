// Chapter 1. Solution of exercise 1.4: one-hot rows, and the table that they read.
//
// A one-hot row has a 1 at the place of a token and 0 elsewhere. For ids, i32 of any shape [...], return them as f64
// [..., words]: token id 2 among 4 words is 0, 0, 1, 0.
// Then read a table, f64 [words, D], at these ids with one matrix product: the result is [..., D], the rows of the
// table that the ids name. A model's embedding does this with every token.
// shape().plus(n) is a shape with one more axis. x.reshape({-1, n}), x.data<i32>(), x.set(i, value), which writes
// element number i, and matmul(a, b) help.
#include "core/tensor_ops.h"

using namespace orrery;

Tensor my_one_hot(const Tensor& ids, i64 words) {
  Tensor result = zeros(ids.shape().plus(words), f64);
  for (i64 i = 0; i < ids.count(); ++i) result.set(i * words + ids.data<i32>()[i], 1);
  return result;
}

Tensor my_lookup(const Tensor& ids, const Tensor& table) { return matmul(my_one_hot(ids, table.size(0)), table); }
