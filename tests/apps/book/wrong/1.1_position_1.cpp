// Chapter 1. A wrong answer to exercise 1.1: the first index counts fastest, as in Fortran.
// Expect: the number is 4, should be 5
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

i64 my_position(const std::vector<i64>& shape, const std::vector<i64>& index) {
  i64 position = 0, stride = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    position += (index[axis] < 0 ? index[axis] + shape[axis] : index[axis]) * stride;
    stride *= shape[axis];
  }
  return position;
}
