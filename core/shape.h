// Chapter 1. Shape: a short list of sizes, with NumPy's broadcasting rule.
//
// Broadcasting aligns two shapes at their last axes. Two sizes fit if they are equal, or if one of them is 1, which is
// then repeated:
//   [8, 1, 6] with [7, 1]  ->  [8, 7, 6]
// A Shape is stored inside its tensor, not on the heap, so making one is cheap.
// Read next: core/tensor.h
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <ostream>
#include <span>

#include "core/dtype.h"

namespace orrery {

/// Up to `max_rank` sizes. A scalar has rank 0 and one element. Sizes are 0 or more; a -1 stands for a size that
/// `infer` finds.
class Shape {
 public:
  static constexpr int max_rank = 6;

  Shape() = default;
  Shape(std::initializer_list<i64> sizes) : Shape(std::span<const i64>(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const i64> sizes);

  int rank() const { return rank_; }
  /// The number of elements: the product of all sizes.
  i64 count() const;
  /// The product of the sizes along the axes [first, limit), counted from 0; 1 if there are none.
  /// Overflow is not checked. Error: 0 <= first and limit <= rank() do not hold.
  i64 count(int first, int limit) const;
  /// Size along `axis`; negative axes count from the end, as in NumPy. Error: there is no such axis.
  i64 operator[](int axis) const { return sizes_[static_cast<size_t>(this->axis(axis, "size"))]; }
  /// `axis` as an index from 0 to rank() - 1. An axis out of range is an error that names `operation`.
  int axis(i64 axis, std::string_view operation) const {
    if (axis < -rank_ || axis >= rank_) [[unlikely]]
      fail_axis(axis, operation);
    return static_cast<int>(axis < 0 ? axis + rank_ : axis);
  }
  /// This shape with the size along `axis` replaced. Error: there is no such axis.
  Shape with(int axis, i64 size) const;
  /// This shape with a last axis appended.
  Shape plus(i64 size) const;
  /// This shape without its last `n` axes.
  Shape without_last(int n = 1) const;

  const i64* begin() const { return sizes_.data(); }
  const i64* end() const { return sizes_.data() + rank_; }
  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  [[noreturn]] void fail_axis(i64 axis, std::string_view operation) const;  // not inline, to keep callers small

  std::array<i64, max_rank> sizes_{};
  int rank_ = 0;
};

/// The shape that two operands are broadcast to. Sizes that differ, with neither of them 1, are an error that names
/// `operation`.
Shape broadcast(const Shape& a, const Shape& b, std::string_view operation);

/// `shape` with a size of -1, if there is one, replaced by the size that makes `count` elements. Errors, which name
/// `operation`: more than one -1; no size makes that count.
Shape infer(const Shape& shape, i64 count, std::string_view operation);

std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace orrery
