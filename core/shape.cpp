// Chapter 1. Shapes: counting, comparing and broadcasting them.
#include "core/shape.h"

#include <algorithm>

namespace orrery {

Shape::Shape(std::span<const i64> sizes) : rank_(static_cast<int>(sizes.size())) {
  check(rank_ <= max_rank, "shape", "at most ", max_rank, " axes, got ", rank_);
  std::copy(sizes.begin(), sizes.end(), sizes_.begin());
  for (i64 size : sizes) check(size >= -1, "shape", "sizes must be 0 or more (-1: to be inferred), got ", *this);
}

i64 Shape::count() const {
  i64 product = 1;
  bool empty = false;
  for (i64 size : *this) {  // a 0 must not hide an overflow: strides are products of some of the sizes
    empty |= size == 0;
    check(size == 0 || !__builtin_mul_overflow(product, size, &product), "shape", "the number of elements of ", *this,
          " overflows");
  }
  return empty ? 0 : product;
}

i64 Shape::count(int first, int limit) const {
  check(first >= 0 && limit <= rank_, "shape", "axes ", first, " to ", limit, " are out of range for shape ", *this);
  i64 product = 1;
  for (int axis = first; axis < limit; ++axis) product *= sizes_[static_cast<size_t>(axis)];
  return product;
}

void Shape::fail_axis(i64 axis, std::string_view operation) const {
  fail(operation, "axis ", axis, " is out of range for shape ", *this);
}

Shape Shape::with(int axis, i64 size) const {
  Shape result = *this;
  result.sizes_[static_cast<size_t>(this->axis(axis, "shape"))] = size;
  return result;
}

Shape Shape::plus(i64 size) const {
  check(rank_ < max_rank, "shape", "at most ", max_rank, " axes, cannot append one to ", *this);
  Shape result = *this;
  result.sizes_[static_cast<size_t>(result.rank_++)] = size;
  return result;
}

Shape Shape::without_last(int n) const {
  check(n >= 0 && n <= rank_, "shape", "cannot drop ", n, " axes of ", *this);
  return Shape(std::span(begin(), static_cast<size_t>(rank_ - n)));
}

Shape broadcast(const Shape& a, const Shape& b, std::string_view operation) {
  Shape result = a.rank() >= b.rank() ? a : b;
  for (int axis = 1; axis <= std::min(a.rank(), b.rank()); ++axis) {
    const i64 m = a[-axis], n = b[-axis];
    check(m == n || m == 1 || n == 1, operation, "shapes ", a, " and ", b, " do not broadcast (", m, " against ", n,
          " at axis ", -axis, ")");
    result = result.with(-axis, m == 1 ? n : m);
  }
  return result;
}

Shape infer(const Shape& shape, i64 count, std::string_view operation) {
  i64 known = 1;
  int unknown = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != -1) {
      check(!__builtin_mul_overflow(known, shape[axis], &known), operation, "cannot make ", shape, " of ", count,
            " elements");
    } else {
      check(unknown < 0, operation, "only one size may be -1, got ", shape);
      unknown = axis;
    }
  }
  if (unknown < 0) return shape;
  check(known != 0 && count % known == 0, operation, "cannot make ", shape, " of ", count, " elements");
  return shape.with(unknown, count / known);
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '[';
  for (const i64* size = shape.begin(); size != shape.end(); ++size)
    out << (size == shape.begin() ? "" : ", ") << *size;
  return out << ']';
}

}  // namespace orrery
