// Chapter 3. An operation of your own, written twice: as a struct and as two formulas.
// Question: how do you know that a derivative worked out by hand is right?
// Answer: `prove` compares it with the slope of the function, breaks it on purpose to see whether its checks notice,
//   and more. Both forms of softsign, y = x / (1 + |x|), y' = 1 / (1 + |x|)^2, are proven; a derivative without the
//   square is rejected.
// Read next: autograd/ops/matmul.cpp
#include <cmath>
#include <iostream>

#include "apps/book/measured.h"
#include "autograd/check/proof.h"
#include "autograd/elementwise.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

// The general form: forward saves what backward needs, and backward computes dx from dy.
struct Softsign {
  static constexpr std::string_view name = "softsign";
  Saved slope;
  Tensor forward(const Tensor& x) {
    const Tensor shrink = kernels::map(x, name, [](auto v) { return 1 / (1 + std::fabs(v)); });
    slope = shrink * shrink;
    return x * shrink;
  }
  void backward(const Tensor& dy, Grads& dx) { dx.add(0, dy * slope.get()); }
};
Variable softsign(const Variable& x) { return apply(Softsign{}, x); }

// The short form, for functions that look at one element at a time.
struct ShortSoftsign {
  static constexpr std::string_view name = "short_softsign";
  template <class T> T value(T x) const { return x / (1 + std::fabs(x)); }
  template <class T> T derivative(T x) const { return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x))); }
};
struct WrongSoftsign : ShortSoftsign {
  template <class T> T derivative(T x) const { return 1 / (1 + std::fabs(x)); }  // wrong: the square is missing
};

}  // namespace

int main() {
  const Proof general = prove("softsign", softsign, {{3, 4}});
  const Proof brief =
      prove("two formulas", [](const Variable& x) { return elementwise(ShortSoftsign{}, x); }, {{3, 4}});
  const Proof wrong =
      prove("square forgotten", [](const Variable& x) { return elementwise(WrongSoftsign{}, x); }, {{3, 4}});
  std::cout << general << '\n' << brief << '\n' << wrong << '\n';

  Rng rng(3);
  const Variable x = parameter(randn({1024}, rng, f64));
  i64 passes = 0;
  const auto counted = [&](const Variable& v) {
    ++passes;
    return softsign(v);
  };
  const double numeric = book::shortest_ms([&] {
    passes = 0;
    gradcheck(counted, {x.value()});
  });
  const double analytic = book::shortest_ms([&] { backward(softsign(x), x.value()); });
  std::cout << "measured: " << x.value().count() << " slopes by differences: " << passes << " forward passes, "
            << numeric << " ms; by backward: one pass each way, " << analytic << " ms\n";
  return general && brief && !wrong ? 0 : 1;
}
