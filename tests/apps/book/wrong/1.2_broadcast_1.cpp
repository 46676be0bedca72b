// Chapter 1. A wrong answer to exercise 1.2: aligned at the first axis.
// Expect: an error: my_broadcast
#include <algorithm>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

std::vector<i64> my_broadcast(const std::vector<i64>& a, const std::vector<i64>& b) {
  std::vector<i64> result = a.size() > b.size() ? a : b;
  for (size_t axis = 0; axis < std::min(a.size(), b.size()); ++axis) {
    if (a[axis] != b[axis] && a[axis] != 1 && b[axis] != 1) fail("my_broadcast", "sizes differ, and neither is 1");
    result[axis] = a[axis] == 1 ? b[axis] : a[axis];
  }
  return result;
}
