// Chapter 4. Moving elements: reshaping, permuting, joining, cutting, repeating and choosing.
//
// These are functions of core/tensor_ops.h and core/choosing.h with a derivative. Negative axes and bounds count from
// the end. Errors: an axis that x does not have; sizes that do not fit.
#pragma once

#include <array>
#include <initializer_list>
#include <limits>
#include <span>

#include "autograd/variable.h"

namespace orrery {

/// The same elements in another shape of the same count. One size may be -1: it is computed from the others.
Variable reshape(const Variable& x, const Shape& shape);
/// Reorders the axes: axis i of the result is axis order[i] of x.
Variable permute(const Variable& x, std::span<const i64> order);
inline Variable permute(const Variable& x, std::initializer_list<i64> order) {
  return permute(x, std::span(order.begin(), order.size()));
}
/// The parts joined along `axis`; all other sizes must be equal.
Variable concat(std::span<const Variable> parts, i64 axis);
inline Variable concat(std::initializer_list<Variable> parts, i64 axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}
/// Elements [begin, end) along `axis`. Bounds beyond the end are cut to it.
Variable slice(const Variable& x, i64 axis, i64 begin, i64 end = std::numeric_limits<i64>::max());
/// Two parts of x along `axis`: the first `size` elements and the rest. Error: there are fewer than `size`.
std::array<Variable, 2> split(const Variable& x, i64 size, i64 axis);
/// Three equal parts along `axis`: Q, K and V of a packed product. Error: the size is not divisible by 3.
std::array<Variable, 3> split3(const Variable& x, i64 axis);
/// x repeated to `shape`, to which it must broadcast.
Variable broadcast_to(const Variable& x, const Shape& shape);
/// Entry number i along `axis`, which is dropped; a negative i counts from the end. Error: there is no such entry.
Variable select(const Variable& x, i64 axis, i64 i);
/// x where `condition` (i32) is not 0, y elsewhere; all three are broadcast. What is not chosen may be NaN.
Variable where(const Tensor& condition, const Variable& x, const Variable& y);
/// y[.., j, ..] = x[.., ids[.., j, ..], ..] along `axis`: core/choosing.h.
Variable gather(const Variable& x, i64 axis, const Tensor& ids);
/// A copy of x in which `part`, of the shape of `ids`, is written to the elements that `gather` would read, or added
/// to them with `accumulate`. Error: without `accumulate`, an element that would be written twice.
Variable scatter(const Variable& x, i64 axis, const Tensor& ids, const Variable& part, bool accumulate = false);

}  // namespace orrery
