// Chapter 6. The bug zoo, operations: each struct is an operation of autograd/ops/ with one mistake.
//
// More of them are programs to repair, in apps/book/bugs. To hunt for the mistakes yourself, begin with
// apps/book/bugs/README.md, and read no further here: structs say what is wrong.
#pragma once

#include <cmath>
#include <numbers>

#include "autograd/apply.h"
#include "autograd/elementwise.h"
#include "autograd/ops.h"
#include "core/kernels/elementwise.h"
#include "core/tensor_ops.h"

namespace orrery::bugs {

struct Softmax {
  static constexpr std::string_view name = "softmax";
  Saved y;
  Tensor forward(const Tensor& x) {
    const Tensor e = kernels::map(x - max(x, {-1}, true), name, [](auto v) { return std::exp(v); });
    const Tensor result = e / sum(e, {-1}, true);
    y = result;
    return result;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, y.get() * dy); }
};

struct Matmul {
  static constexpr std::string_view name = "matmul";
  Saved a, b;
  Tensor forward(const Tensor& left, const Tensor& right) {
    a = left;
    b = right;
    return matmul(left, right);
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, matmul(dy, b.get()));
    dx.add(1, matmul(a.get(), dy));
  }
};

struct DropoutNotRescaled {
  static constexpr std::string_view name = "dropout";
  double p;
  Draw draw;
  Tensor dropped(const Tensor& x) const { return orrery::dropout(constant(x), p, draw).value(); }
  Tensor forward(const Tensor& x) { return dropped(x); }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dropped(dy) * (1 - p)); }
};

struct Gelu {
  static constexpr std::string_view name = "gelu";
  template <class T>
  T value(T x) const {
    return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<T>));
  }
  template <class T>
  T derivative(T x) const {
    const T slope = std::sqrt(2 / std::numbers::pi_v<T>), cubic = static_cast<T>(0.044715);
    const T t = std::tanh(slope * (x + cubic * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * slope * (1 + 3 * cubic * x * x);
  }
};

// Wrong only at a point without a derivative: no difference quotient shows that.
struct Relu {
  static constexpr std::string_view name = "relu";
  template <class T>
  T value(T x) const {
    return x < 0 ? T{0} : x;
  }
  template <class T>
  T derivative(T x) const {
    return x >= 0 ? T{1} : T{0};
  }
};

// Right in f64: gradcheck works there, and the proof compares the two.
struct TanhSaturatedEarlyInF32 {
  static constexpr std::string_view name = "tanh";
  Saved x;
  Tensor forward(const Tensor& in) {
    x = in;
    return kernels::map(in, name, [](auto v) { return std::tanh(v); });
  }
  void backward(const Tensor& dy, Grads& dx) {
    dx.add(0, dy * kernels::map(x.get(), name, [](auto v) {
                const auto y = std::tanh(v);
                const bool saturated = sizeof v == sizeof(float) && std::fabs(v) > 1.5;
                return saturated ? decltype(v){0} : 1 - y * y;
              }));
  }
};

// Right as long as somebody else holds the output: backward reads what it has just written over.
struct SoftmaxOverItsOutput {
  static constexpr std::string_view name = "softmax";
  Saved y;
  Tensor forward(const Tensor& x) {
    const Tensor result = orrery::softmax(constant(x)).value();
    y = result;
    return result;
  }
  void backward(const Tensor& dy, Grads& dx) {
    const Tensor saved = y.get();
    y = Saved();
    Tensor g = dx.reuse(saved);
    copy_into(g, saved * dy);
    dx.add(0, g - saved * sum(g, {-1}, true));
  }
};

}  // namespace orrery::bugs
