// Chapter 3. Activation functions, the nonlinearities between linear maps, and other functions of one number.
//
//   tanh              y' = 1 - y^2
//   sigmoid s(x)      y' = y (1 - y)
//   relu, gelu        see autograd/ops/formulas.h
//   silu x s(x)       y' = s(x) (1 + x (1 - s(x)))
//   softplus          y  = max(0, x) + ln(1 + e^{-|x|}), which does not overflow        y' = s(x)
//   elu               y  = x where x > 0, else alpha (e^x - 1)                          y' = 1, or alpha e^x
//   abs               y' = the sign of x, and 0 at 0
//   clamp             y' = 1 where low <= x <= high, else 0
//   sin, cos          y' = cos x, -sin x
//
// One is not elementwise, the gated linear unit of Dauphin et al. 2017 ("Language Modeling with Gated Convolutional
// Networks"): one half of the numbers decides how much of the other half passes. x = [a | b] along the last axis, and
//   y = a g        g = s(b)        da = dy g        db = dy a g (1 - g)
// da is dy times g, which is near 1 where the gate is open. In a gated tanh unit, da would also have the factor
// tanh'(a), which is small where |a| is large. So gradients pass through many layers of this kind (section 3).
#include "autograd/ops/activation.h"

#include "autograd/apply.h"
#include "autograd/elementwise.h"
#include "autograd/ops/formulas.h"
#include "core/kernels/elementwise.h"
#include "core/machine/math.h"

namespace orrery {
using namespace kernels;
namespace {

struct Tanh {
  static constexpr std::string_view name = "tanh";
  template <class T> T value(T x) const { return math::tanh(x); }
  template <class T> T derivative_at_output(T y) const { return T{1} - y * y; }
};

struct Sigmoid {
  static constexpr std::string_view name = "sigmoid";
  template <class T> T value(T x) const { return math::sigmoid(x); }
  template <class T> T derivative_at_output(T y) const { return y * (T{1} - y); }
};

struct Silu {
  static constexpr std::string_view name = "silu";
  template <class T> T value(T x) const { return x * math::sigmoid(x); }
  template <class T> T derivative(T x) const {
    const T s = math::sigmoid(x);
    return s * (T{1} + x * (T{1} - s));
  }
};

struct Softplus {
  static constexpr std::string_view name = "softplus";
  template <class T> T value(T x) const { return (x < T{0} ? T{0} : x) + std::log1p(math::exp(-std::fabs(x))); }
  template <class T> T derivative(T x) const { return math::sigmoid(x); }
};

struct Elu {
  static constexpr std::string_view name = "elu";
  double alpha;
  template <class T> T value(T x) const { return x > T{0} ? x : static_cast<T>(alpha) * std::expm1(x); }
  template <class T> T derivative(T x) const { return x > T{0} ? T{1} : static_cast<T>(alpha) * math::exp(x); }
};

struct Abs {
  static constexpr std::string_view name = "abs";
  template <class T> T value(T x) const { return std::fabs(x); }
  template <class T> T derivative(T x) const { return static_cast<T>((x > T{0}) - (x < T{0})); }
};

struct Clamp {
  static constexpr std::string_view name = "clamp";
  double low, high;
  template <class T> T value(T x) const {
    const T a = static_cast<T>(low), b = static_cast<T>(high);
    return x < a ? a : (x > b ? b : x);  // NaN passes through
  }
  template <class T> T derivative(T x) const {
    return x >= static_cast<T>(low) && x <= static_cast<T>(high) ? T{1} : T{0};
  }
};

struct Sin {
  static constexpr std::string_view name = "sin";
  template <class T> T value(T x) const { return std::sin(math::flushed(x)); }
  template <class T> T derivative(T x) const { return std::cos(x); }
};

struct Cos {
  static constexpr std::string_view name = "cos";
  template <class T> T value(T x) const { return std::cos(x); }
  template <class T> T derivative(T x) const { return -std::sin(math::flushed(x)); }
};

template <class T> void glu_row(i64 C, const T* x, T* y) {
  const T* b = x + C;
#pragma omp simd
  for (i64 i = 0; i < C; ++i) y[i] = x[i] * math::sigmoid(b[i]);
}

template <class T> void glu_derivative_row(i64 C, const T* x, const T* dy, T* dx) {
  const T* b = x + C;
#pragma omp simd
  for (i64 i = 0; i < C; ++i) {
    const T g = math::sigmoid(b[i]), da = dy[i] * g;
    dx[i] = da;
    dx[C + i] = da * x[i] * (T{1} - g);
  }
}

struct Glu {
  static constexpr std::string_view name = "glu";
  Saved x;

  Tensor forward(const Tensor& in) {
    check(in.rank() >= 1 && in.size(-1) % 2 == 0, name, "needs an even number of columns, has shape ", in.shape());
    x = in;
    const i64 C = in.size(-1) / 2;
    Tensor y = Tensor::empty(in.shape().without_last().plus(C), in.dtype());
    dispatch_floating(in.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T* from = in.data<T>();
      T* to = y.write<T>();
      for_rows(in.shape().without_last().count(), 2 * C,
               [=](i64 row) { glu_row(C, from + row * 2 * C, to + row * C); });
    });
    return y;
  }

  void backward(const Tensor& dy, Grads& dx) {
    const Tensor& in = x;
    const i64 C = dy.size(-1);
    Tensor d = Tensor::empty(in.shape(), in.dtype());
    dispatch_floating(in.dtype(), name, [&](auto t) {
      using T = decltype(t);
      const T *at = in.data<T>(), *from = dy.data<T>();
      T* to = d.write<T>();
      for_rows(in.shape().without_last().count(), 2 * C,
               [=](i64 row) { glu_derivative_row(C, at + row * 2 * C, from + row * C, to + row * 2 * C); });
    });
    dx.add(0, std::move(d));
  }
};

}  // namespace

Variable tanh(const Variable& x) { return elementwise(Tanh{}, x); }
Variable sigmoid(const Variable& x) { return elementwise(Sigmoid{}, x); }
Variable relu(const Variable& x) { return elementwise(formula::Relu{}, x); }
Variable gelu(const Variable& x) { return elementwise(formula::Gelu{}, x); }
Variable gelu_tanh(const Variable& x) { return elementwise(formula::GeluTanh{}, x); }
Variable silu(const Variable& x) { return elementwise(Silu{}, x); }
Variable softplus(const Variable& x) { return elementwise(Softplus{}, x); }
Variable elu(const Variable& x, double alpha) { return elementwise(Elu{alpha}, x); }
Variable abs(const Variable& x) { return elementwise(Abs{}, x); }
Variable clamp(const Variable& x, double low, double high) {
  check(low <= high, "clamp", "needs low <= high, got ", low, " and ", high);
  return elementwise(Clamp{low, high}, x);
}
Variable sin(const Variable& x) { return elementwise(Sin{}, x); }
Variable cos(const Variable& x) { return elementwise(Cos{}, x); }
Variable glu(const Variable& x) { return apply(Glu{}, x); }

}  // namespace orrery
