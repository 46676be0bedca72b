// Chapter 3. An elementwise operation is two formulas: y = f(x), and its derivative.
//
//   struct Tanh {
//     static constexpr std::string_view name = "tanh";
//     template <class T> T value(T x) const { return math::tanh(x); }
//     template <class T> T derivative_at_output(T y) const { return 1 - y * y; }
//   };
//   Variable tanh(const Variable& x) { return elementwise(Tanh{}, x); }
// Backward computes dx_i = dy_i f'(x_i). A formula has either derivative_at_output(T y), and then y is saved, or
// derivative(T x), and then x is saved.
// Read next: autograd/ops/elementwise.cpp
#pragma once

#include "autograd/apply.h"
#include "core/kernels/elementwise.h"

namespace orrery {

/// The operation that the two functions of a Formula define.
template <class Formula> struct ElementwiseOperation {
  static constexpr std::string_view name = Formula::name;
  static constexpr bool from_output = requires(const Formula& f) { f.derivative_at_output(1.0); };
  Formula formula;
  Saved kept;

  Tensor forward(const Tensor& x) {
    const Tensor y = kernels::map(x, name, [f = formula](auto value) { return f.value(value); });
    kept = from_output ? y : x;
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    if (!dx.wanted(0)) return;
    const Tensor& at = kept;
    const GradientBuffer into = dx.into(0);
    dispatch_floating(at.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *x = at.data<T>(), *d = dy.data<T>();
      T* out = into.buffer.write<T>();
      parallel_for(at.count(), elementwise_grain, [=, f = formula, is_new = into.is_new](i64 begin, i64 end) {
        const auto derivative = [f](T value) {
          if constexpr (from_output)
            return f.derivative_at_output(value);
          else
            return f.derivative(value);
        };
        if (is_new) {
#pragma omp simd
          for (i64 i = begin; i < end; ++i) out[i] = d[i] * derivative(x[i]);
        } else {
#pragma omp simd
          for (i64 i = begin; i < end; ++i) out[i] += d[i] * derivative(x[i]);
        }
      });
    });
  }
};

/// Applies a Formula to every element and records it.
template <class Formula> Variable elementwise(Formula formula, const Variable& x) {
  return apply(ElementwiseOperation<Formula>{formula, {}}, x);
}

}  // namespace orrery
