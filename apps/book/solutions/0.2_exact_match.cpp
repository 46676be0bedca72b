// Chapter 0. Solution of exercise 0.2: exact match.
//
// Both tensors are i32 [N, T]: what the model wrote for N sources, and what it should have written. Return the fraction
// of the answers that are exactly right, from 0 to 1. Every wanted row has one end mark, 2. An answer is right if all
// tokens up to the end mark, and the end mark itself, are the wanted ones. What stands after the end mark does not
// matter: nobody reads it. If there are no answers, return 0.
// Element (i, j) of a tensor x is x(i, j), a double.
#include "core/tensor_ops.h"

using namespace orrery;

double my_exact_match(const Tensor& answers, const Tensor& wanted) {
  const i64 N = wanted.size(0), T = wanted.size(1);
  i64 exact = 0;
  for (i64 row = 0; row < N; ++row) {
    bool right = true, ended = false;
    for (i64 t = 0; t < T && right && !ended; ++t) {
      right = answers(row, t) == wanted(row, t);
      ended = wanted(row, t) == 2;
    }
    exact += right;
  }
  return N == 0 ? 0 : static_cast<double>(exact) / static_cast<double>(N);
}
