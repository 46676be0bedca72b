// Chapter 1. Solution of exercise 1.2: broadcasting by hand.
//
// Return the shape to which the shapes a and b are broadcast. They are aligned at their last axes, and the shorter
// one is filled up with 1 at the front. Two sizes fit if they are equal, or if one of them is 1: then the other one
// is the result.
// Where two sizes do not fit, call fail("my_broadcast", "why"), which throws.
#include <algorithm>
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

std::vector<i64> my_broadcast(const std::vector<i64>& a, const std::vector<i64>& b) {
  const size_t rank = std::max(a.size(), b.size());
  const auto size = [rank](const std::vector<i64>& shape, size_t axis) {
    const size_t missing = rank - shape.size();
    return axis < missing ? 1 : shape[axis - missing];
  };
  std::vector<i64> result(rank);
  for (size_t axis = 0; axis < rank; ++axis) {
    const i64 m = size(a, axis), n = size(b, axis);
    if (m != n && m != 1 && n != 1) fail("my_broadcast", "sizes differ, and neither is 1");
    result[axis] = m == 1 ? n : m;
  }
  return result;
}
