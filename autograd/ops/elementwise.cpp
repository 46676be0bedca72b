// Chapter 3. Powers, exponentials, logarithms and roots.
//
//   y = x^p       dx = dy p x^(p-1)          y = e^x       dx = dy y
//   y = ln x      dx = dy / x                y = sqrt x    dx = dy / 2y
// A denormal x counts as 0 (core/machine/math.h): ln x is -infinity, and dx infinite.
// Read next: autograd/check/proof.h
#include "autograd/ops/elementwise.h"

#include "autograd/elementwise.h"
#include "core/machine/math.h"

namespace orrery {
namespace {

struct Pow {
  static constexpr std::string_view name = "pow";
  double p;
  template <class T> T value(T x) const { return math::pow(x, static_cast<T>(p)); }
  template <class T> T derivative(T x) const {
    return p == 0 ? T{0} : static_cast<T>(p) * math::pow(x, static_cast<T>(p - 1));
  }
};

struct Exp {
  static constexpr std::string_view name = "exp";
  template <class T> T value(T x) const { return math::exp(x); }
  template <class T> T derivative_at_output(T y) const { return y; }
};

struct Log {
  static constexpr std::string_view name = "log";
  template <class T> T value(T x) const { return math::log(x); }
  template <class T> T derivative(T x) const { return T{1} / math::flushed(x); }
};

struct Sqrt {
  static constexpr std::string_view name = "sqrt";
  template <class T> T value(T x) const { return std::sqrt(x); }
  template <class T> T derivative_at_output(T y) const { return T{0.5} / y; }
};

}  // namespace

Variable pow(const Variable& x, double exponent) { return elementwise(Pow{exponent}, x); }
Variable exp(const Variable& x) { return elementwise(Exp{}, x); }
Variable log(const Variable& x) { return elementwise(Log{}, x); }
Variable sqrt(const Variable& x) { return elementwise(Sqrt{}, x); }

}  // namespace orrery
