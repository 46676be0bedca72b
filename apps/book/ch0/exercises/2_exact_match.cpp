// Chapter 0. Exercise 0.2: exact match.
//
// Both tensors are i32 [N, T]: what the model wrote for N sources, and what it should have written. Return the fraction
// of the answers that are exactly right, from 0 to 1. Every wanted row has one end mark, 2. An answer is right if all
// tokens up to the end mark, and the end mark itself, are the wanted ones. What stands after the end mark does not
// matter: nobody reads it. If there are no answers, return 0.
// Element (i, j) of a tensor x is x(i, j), a double.
// Grade it:  apps/run exercise 0.2
#include "core/tensor_ops.h"

using namespace orrery;

double my_exact_match(const Tensor& answers, const Tensor& wanted) {
  return answers.size(0) == wanted.size(0) ? 1 : 0;  // YOUR CODE
}
