// Chapter 3. A wrong answer to exercise 3.1: the derivative of the logarithm is forgotten.
// Expect: [0] is 3, should be 0.75
#include <cmath>

#include "autograd/elementwise.h"

using namespace orrery;

struct MySoftplus {
  static constexpr std::string_view name = "my_softplus";
  template <class T>
  T value(T x) const {
    return std::log(T{1} + std::exp(x));
  }
  template <class T>
  T derivative(T x) const {
    return std::exp(x);
  }
};

Variable my_softplus(const Variable& x) { return elementwise(MySoftplus{}, x); }
