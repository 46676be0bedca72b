// Chapter 8. What the tests of fused operations share: the fused form beside its composed, textbook form.
#pragma once

#include <functional>

#include "tests/autograd/ops/support.h"

namespace orrery::small {

using Variables = std::vector<Variable>;
using Function = std::function<Variable(const Variables&)>;

inline std::vector<Tensor> normals(const std::vector<Shape>& shapes, Dtype dtype = f64) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < shapes.size(); ++i) tensors.push_back(normal(shapes[i], 30 + i, dtype));
  return tensors;
}

inline std::vector<Tensor> converted(const std::vector<Tensor>& tensors, Dtype dtype) {
  std::vector<Tensor> result;
  for (const Tensor& x : tensors) result.push_back(x.to(dtype));
  return result;
}

/// f's value, then dL/dx of each input, for a fixed random dL/dy that f32 and f64 hold alike; backward runs `passes`
/// times.
inline std::vector<Tensor> value_then_gradients(const Function& f, const std::vector<Tensor>& inputs, int passes = 1) {
  Variables x;
  for (const Tensor& input : inputs) x.push_back(parameter(input.clone()));
  Tensor value;
  for (int pass = 0; pass < passes; ++pass) {
    const Variable y = f(x);
    value = y.value();
    backward(y, normal(y.shape(), 11, f32).to(y.dtype()));
  }
  std::vector<Tensor> result{value.clone()};
  for (const Variable& input : x) result.push_back(input.gradient());
  return result;
}

/// The largest difference, relative to the largest |expected| of all; infinite where only one of two is defined.
inline double distance(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double worst = 0, largest = 0;
  for (size_t t = 0; t < expected.size(); ++t) {
    if (got[t].defined() != expected[t].defined()) return infinity;
    if (!got[t].defined()) continue;
    if (got[t].shape() != expected[t].shape()) return infinity;
    for (i64 i = 0; i < got[t].count(); ++i) {
      const double difference = std::fabs(got[t].at(i) - expected[t].at(i));
      if (!(difference <= worst)) worst = std::isnan(difference) ? infinity : difference;
      largest = std::max(largest, std::fabs(expected[t].at(i)));
    }
  }
  return worst == 0 ? 0 : worst / largest;
}

/// f used twice on values computed from the inputs: its gradients meet others that are there already.
inline Function used_twice(const Function& f) {
  return [f](const Variables& inputs) {
    Variables x;
    for (const Variable& input : inputs) x.push_back(input * 1.5);
    return f(x) + f(x) * 0.25;
  };
}

/// Value and all gradients agree: in f64 and f32, used once and twice, with one pass of backward and with two.
inline void check_fused(const Function& fused, const Function& composed, const std::vector<Tensor>& inputs) {
  constexpr double f64_error = 1e-12, f32_error = 1e-5;
  CHECK(distance(value_then_gradients(fused, inputs), value_then_gradients(composed, inputs)) <= f64_error);
  CHECK(distance(value_then_gradients(used_twice(fused), inputs), value_then_gradients(used_twice(composed), inputs)) <=
        f64_error);
  CHECK(distance(value_then_gradients(fused, inputs, 2), value_then_gradients(composed, inputs, 2)) <= f64_error);
  const std::vector<Tensor> single = converted(inputs, f32);
  CHECK(distance(converted(value_then_gradients(fused, single), f64),
                 value_then_gradients(composed, converted(single, f64))) <= f32_error);
}

}  // namespace orrery::small
