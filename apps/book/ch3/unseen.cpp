// Chapter 3. What a proof cannot see.
// Question: which wrong operations pass every part of a proof?
// Answer: one whose value is wrong and whose derivative fits that value, and one that is wrong only for numbers that
//   the proof does not try. So a proof needs a second source for values, and a look at the range.
#include <cmath>
#include <iostream>

#include "autograd/check/proof.h"
#include "autograd/elementwise.h"

using namespace orrery;

namespace {

// Meant as softsign, x / (1 + |x|). The 1 has become a 2, in the value and in the derivative.
struct OtherFunction {
  static constexpr std::string_view name = "other_function";
  template <class T> T value(T x) const { return x / (2 + std::fabs(x)); }
  template <class T> T derivative(T x) const { return 2 / ((2 + std::fabs(x)) * (2 + std::fabs(x))); }
};

// Softsign, with no gradient where |x| > 1000: no number that a proof draws is so large.
struct WrongFarAway {
  static constexpr std::string_view name = "wrong_far_away";
  template <class T> T value(T x) const { return x / (1 + std::fabs(x)); }
  template <class T> T derivative(T x) const {
    return std::fabs(x) > 1000 ? T{0} : 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
  }
};

}  // namespace

int main() {
  const Proof other =
      prove("another function", [](const Variable& x) { return elementwise(OtherFunction{}, x); }, {{3, 4}});
  const Proof far = prove("wrong far away", [](const Variable& x) { return elementwise(WrongFarAway{}, x); }, {{3, 4}});
  for (const Proof* proof : {&other, &far})
    std::cout << proof->name << (*proof ? ": proven, " : ": NOT PROVEN, ") << proof->parts.size() << " parts\n";

  const Variable x = parameter(Tensor::of<double>({2}, {1, 2000})), y = elementwise(OtherFunction{}, x);
  std::cout << "softsign(1) is 0.5, the other function's value " << y.value().at(0) << '\n';
  const Variable z = elementwise(WrongFarAway{}, x);
  backward(z, full({2}, 1, f64));
  std::cout << "the slope at 2000 is not 0, but backward says " << x.gradient().at(1) << '\n';
  return other && far && x.gradient().at(1) == 0 ? 0 : 1;
}
