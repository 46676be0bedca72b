// Chapter 3. Bug 16: the hyperbolic tangent.
//
// y = tanh(x), element by element; elementwise makes an operation of a value and its derivative
// (autograd/elementwise.h).
// Its symptoms:  apps/run gradcheck --bug 16
// Grade it:  apps/run exercise bug.16
#include <cmath>

#include "autograd/elementwise.h"

using namespace orrery;

struct Tanh {
  static constexpr std::string_view name = "tanh";
  template <class T> T value(T x) const { return std::tanh(x); }
  template <class T> T derivative(T x) const { return 1 - x * x; }
};

Variable my_tanh(const Variable& x) { return elementwise(Tanh{}, x); }
