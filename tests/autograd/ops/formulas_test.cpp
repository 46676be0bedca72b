// Chapter 3. The formulas of the activations: known values, and each derivative against the slope.
#include "autograd/ops/formulas.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/core/support.h"

using namespace orrery;

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

template <class F>
void check_slope(const F& f) {
  for (double x = -6; x <= 6; x += 0.37) {
    constexpr double h = 1e-5;
    const double slope = (f.value(x + h) - f.value(x - h)) / (2 * h);
    CHECK(std::fabs(f.derivative(x) - slope) <= 1e-9);
    const float single = static_cast<float>(x);
    CHECK(std::fabs(f.derivative(single) - f.derivative(static_cast<double>(single))) <= 1e-6);
    CHECK(std::fabs(f.value(single) - f.value(static_cast<double>(single))) <= 1e-6 * std::max(1.0, std::fabs(x)));
  }
}

}  // namespace

TEST_CASE("relu is 0 below 0, and its derivative is read from the output") {
  const formula::Relu relu;
  CHECK(relu.value(-2.0) == 0);
  CHECK(relu.value(0.0) == 0);
  CHECK(relu.value(3.5F) == 3.5F);
  CHECK(relu.value(-endless) == 0);
  CHECK(relu.value(endless) == endless);
  CHECK(std::isnan(relu.value(std::nan(""))));
  CHECK(relu.derivative_at_output(0.0) == 0);
  CHECK(relu.derivative_at_output(1e-30) == 1);
}

TEST_CASE("gelu is x Phi(x)") {
  const formula::Gelu gelu;
  CHECK(gelu.value(0.0) == 0);
  CHECK(gelu.value(1.0) == doctest::Approx(0.8413447460685429).epsilon(1e-14));
  CHECK(gelu.value(-1.0) == doctest::Approx(-0.15865525393145707).epsilon(1e-14));
  CHECK(gelu.derivative(0.0) == 0.5);
  CHECK(gelu.value(40.0) == 40);
  CHECK(gelu.value(-40.0) == 0);
  check_slope(gelu);
}

TEST_CASE("the tanh form stays within 5e-4 of gelu, and differs") {
  const formula::GeluTanh approximation;
  double largest = 0;
  for (double x = -6; x <= 6; x += 0.01)
    largest = small::worse(largest, std::fabs(approximation.value(x) - formula::Gelu().value(x)));
  CHECK(largest < 5e-4);
  CHECK(largest > 1e-4);
  check_slope(approximation);
}
