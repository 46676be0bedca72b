// Chapter 1. Solution of exercise 1.1: where an element stands.
//
// Elements stand in memory in row-major order: the last index counts fastest. Return the place of the element with
// this index in a tensor of this shape, counted from 0. In a tensor [3, 4] element (1, 1) is number 5.
// A negative index counts from the end, as in NumPy: -1 is the last one. A scalar has the shape [], the index (), and
// one element, number 0.
#include <vector>

#include "core/tensor_ops.h"

using namespace orrery;

i64 my_position(const std::vector<i64>& shape, const std::vector<i64>& index) {
  i64 position = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const i64 i = index[axis] < 0 ? index[axis] + shape[axis] : index[axis];
    position = position * shape[axis] + i;  // what stands before so far, in units of this axis
  }
  return position;
}
