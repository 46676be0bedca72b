// Chapter 4. Moving elements: reshaping, permuting, joining and cutting.
//
// Serves: autograd/elementwise.h
#pragma once

#include <array>
#include <initializer_list>
#include <limits>
#include <span>

#include "autograd/variable.h"

namespace orrery {

Variable reshape(const Variable& x, const Shape& shape);
Variable permute(const Variable& x, std::span<const i64> order);
inline Variable permute(const Variable& x, std::initializer_list<i64> order) {
  return permute(x, std::span(order.begin(), order.size()));
}
Variable concat(std::span<const Variable> parts, i64 axis);
inline Variable concat(std::initializer_list<Variable> parts, i64 axis) {
  return concat(std::span(parts.begin(), parts.size()), axis);
}
Variable slice(const Variable& x, i64 axis, i64 begin, i64 end = std::numeric_limits<i64>::max());
/// Two parts of `x` along `axis`: the first `size` elements and the rest.
std::array<Variable, 2> split(const Variable& x, i64 size, i64 axis);
/// Three equal parts along `axis`: Q, K and V of a packed product.
std::array<Variable, 3> split3(const Variable& x, i64 axis);

}  // namespace orrery
