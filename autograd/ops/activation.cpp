// Chapter 3. Activation functions: the nonlinearities between linear maps.
//
//   tanh              y' = 1 - y^2
//   sigmoid s(x)      y' = y (1 - y)
//   relu, gelu        see autograd/ops/formulas.h
//   silu x s(x)       y' = s(x) (1 + x (1 - s(x)))
#include "autograd/ops/activation.h"

#include "autograd/elementwise.h"
#include "autograd/ops/formulas.h"
#include "core/machine/math.h"

namespace orrery {
namespace {

struct Tanh {
  static constexpr std::string_view name = "tanh";
  template <class T>
  T value(T x) const {
    return math::tanh(x);
  }
  template <class T>
  T derivative_at_output(T y) const {
    return T{1} - y * y;
  }
};

struct Sigmoid {
  static constexpr std::string_view name = "sigmoid";
  template <class T>
  T value(T x) const {
    return math::sigmoid(x);
  }
  template <class T>
  T derivative_at_output(T y) const {
    return y * (T{1} - y);
  }
};

struct Silu {
  static constexpr std::string_view name = "silu";
  template <class T>
  T value(T x) const {
    return x * math::sigmoid(x);
  }
  template <class T>
  T derivative(T x) const {
    const T s = math::sigmoid(x);
    return s * (T{1} + x * (T{1} - s));
  }
};

}  // namespace

Variable tanh(const Variable& x) { return elementwise(Tanh{}, x); }
Variable sigmoid(const Variable& x) { return elementwise(Sigmoid{}, x); }
Variable relu(const Variable& x) { return elementwise(formula::Relu{}, x); }
Variable gelu(const Variable& x) { return elementwise(formula::Gelu{}, x); }
Variable gelu_tanh(const Variable& x) { return elementwise(formula::GeluTanh{}, x); }
Variable silu(const Variable& x) { return elementwise(Silu{}, x); }

}  // namespace orrery
