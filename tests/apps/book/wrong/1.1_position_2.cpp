// Chapter 1. A wrong answer to exercise 1.1: negative indices are taken as they are.
// Expect: the number is -14, should be 14
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

i64 my_position(const std::vector<i64>& shape, const std::vector<i64>& index) {
  i64 position = 0, stride = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    position += index[axis] * stride;
    stride *= shape[axis];
  }
  return position;
}
