// Chapter 3. Solution of bug 16: the hyperbolic tangent.
//
// y = tanh(x), element by element; elementwise makes an operation of a value and its derivative
// (autograd/elementwise.h).
#include <cmath>

#include "autograd/elementwise.h"

using namespace orrery;

struct Tanh {
  static constexpr std::string_view name = "tanh";
  template <class T>
  T value(T x) const {
    return std::tanh(x);
  }
  template <class T>
  T derivative(T x) const {
    const T y = std::tanh(x);
    return 1 - y * y;
  }
};

Variable my_tanh(const Variable& x) { return elementwise(Tanh{}, x); }
