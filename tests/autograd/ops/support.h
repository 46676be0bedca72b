// Chapter 2. What the tests of operations share: values, gradients and errors in one line each.
#pragma once

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "tests/core/support.h"

namespace orrery::small {

inline bool close(double a, double b, double tolerance = 1e-12) {
  return a == b || (std::isfinite(b) && std::fabs(a - b) <= tolerance * std::max(1.0, std::fabs(b)));
}

/// True when x has these elements, within `tolerance` relative to max(1, |element|).
inline bool close(const Tensor& x, const std::vector<double>& expected, double tolerance = 1e-12) {
  if (x.count() != static_cast<i64>(expected.size())) return false;
  for (i64 i = 0; i < x.count(); ++i)
    if (!close(x.at(i), expected[static_cast<size_t>(i)], tolerance)) return false;
  return true;
}

/// f's value and dL/dx of each input, all in one row, for a fixed random dL/dy.
template <class F> Tensor value_and_gradients(const F& f, const std::vector<Tensor>& inputs) {
  std::vector<Variable> x;
  for (const Tensor& input : inputs) x.push_back(parameter(input.clone()));
  const Variable y = f(x);
  backward(y, normal(y.shape(), 11, y.dtype()));
  std::vector<Tensor> parts{y.value().reshape({-1})};
  for (const Variable& input : x) parts.push_back(input.gradient().reshape({-1}));
  return concat(parts, 0);
}

/// dL/dx for L = sum(f(x)).
template <class F> Tensor gradient_of_sum(const F& f, const Tensor& x) {
  const Variable leaf = parameter(x.clone());
  backward(sum(f(leaf)));
  return leaf.gradient();
}

}  // namespace orrery::small
