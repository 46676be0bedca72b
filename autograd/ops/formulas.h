// Chapter 3. Formulas of the Transformer's activation functions, for the single operations and for fused ones.
//
//   relu max(0, x)    y' = 1 where y > 0, else 0 (also at x = 0)
//   gelu x Phi(x)     y' = Phi(x) + x phi(x)             Phi, phi: distribution and density of N(0, 1)
// ReLU: paper, section 3.3. GELU: Hendrycks and Gimpel 2016; its tanh form is the approximation GPT-2 was trained with.
#pragma once

#include <string_view>

#include "core/machine/math.h"

namespace orrery::formula {
namespace {  // a copy for each file that uses them: core/kernels/README.md

struct Relu {
  static constexpr std::string_view name = "relu";
  template <class T> T value(T x) const {
    return x < T{0} ? T{0} : x;  // NaN passes through, since no comparison with it is true
  }
  template <class T> T derivative_at_output(T y) const { return y > T{0} ? T{1} : T{0}; }
};

struct Gelu {
  static constexpr std::string_view name = "gelu";
  template <class T> T value(T x) const { return x * math::normal(x).cdf; }
  template <class T> T derivative(T x) const {
    const auto [cdf, pdf] = math::normal(x);
    return cdf + x * pdf;
  }
};

// x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3), computed as x s with s = 1 / (1 + e^{-2u}). That is equal,
// but accurate where tanh u is near -1 and 1 + tanh u cancels. y' = s + 2 x u' s (1 - s).
struct GeluTanh {
  static constexpr std::string_view name = "gelu_tanh";
  template <class T> static constexpr T scale = T{0.797884560802865355879892119869};  // sqrt(2 / pi)
  template <class T> static constexpr T cubic = T{0.044715};

  // s, and its slope ds/d(2u) = s (1 - s), both from e^{-2|u|}, which is never larger than 1.
  template <class T> struct Gate { T s, slope; };
  template <class T> static Gate<T> gate(T u) {
    const T e = math::exp(T{-2} * std::fabs(u)), s_at_abs = T{1} / (T{1} + e);
    return {u < T{0} ? e * s_at_abs : s_at_abs, e * s_at_abs * s_at_abs};
  }

  template <class T> T value(T x) const { return x * gate(scale<T> * (x + cubic<T> * x * x * x)).s; }
  template <class T> T derivative(T x) const {
    const Gate<T> at = gate(scale<T> * (x + cubic<T> * x * x * x));
    const T rest = T{2} * x * scale<T> * (T{1} + T{3} * cubic<T> * x * x) * at.slope;
    return at.slope == T{0} ? at.s : at.s + rest;  // x^3 may overflow, and infinity times 0 is NaN
  }
};

}  // namespace
}  // namespace orrery::formula
