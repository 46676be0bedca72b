// Chapter 5. Exercise 5.3: the paper's learning rate.
//
// Return the learning rate of a step by the paper's formula (section 5.3). Its slow rise keeps the first steps short,
// which deep stacks of the paper's layers need:
//
// lrate = d_model^(-1/2) min(step^(-1/2), step warmup^(-3/2))
//
// Steps are counted from 1. std::pow and std::min are at hand.
// Grade it:  apps/run exercise 5.3
#include <algorithm>
#include <cmath>

#include "core/tensor_ops.h"

using namespace orrery;

double my_noam(i64 step, i64 d_model, i64 warmup) {
  return 0.001;  // YOUR CODE: a constant rate
}
