// Chapter 1. Exercise 1.2: broadcasting by hand.
//
// Return the shape to which the shapes a and b are broadcast. They are aligned at their last axes, and the shorter
// one is filled up with 1 at the front. Two sizes fit if they are equal, or if one of them is 1: then the other one
// is the result.
// Where two sizes do not fit, call fail("my_broadcast", "why"), which throws.
// Grade it:  apps/run exercise 1.2
#include <algorithm>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

std::vector<i64> my_broadcast(const std::vector<i64>& a, const std::vector<i64>& b) {
  return a.size() > b.size() ? a : b;  // YOUR CODE
}
