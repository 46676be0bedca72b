// Chapter 4. Tests of the row kernels: softmax of one row, its derivative, and what -infinity does to both.
#include "autograd/ops/softmax_rows.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace orrery;
using namespace orrery::kernels;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> softmax_of(const std::vector<double>& x) {
  std::vector<double> y(x.size());
  softmax_row(x.data(), y.data(), static_cast<i64>(x.size()));
  return y;
}
}  // namespace

TEST_CASE("a row's maximum is its largest number, and is what is subtracted unless it is -infinity") {
  const std::vector<double> x{-3, 7, 2}, low(3, -infinity);
  CHECK(row_max(x.data(), 3) == 7);
  CHECK(row_max(x.data(), 0) == -infinity);
  const std::vector<double> lowest(40, std::numeric_limits<double>::lowest()), hidden(40, -infinity);
  CHECK(row_max(lowest.data(), 40) == lowest[0]);
  CHECK(row_max(hidden.data(), 40) == -infinity);
  CHECK(row_shift(x.data(), 3) == 7);
  CHECK(row_shift(low.data(), 3) == 0);
}

TEST_CASE("softmax of a row is e^x over their sum, for any shift of x") {
  for (double shift : {0.0, 1e4, -1e4}) {
    const std::vector<double> y = softmax_of({shift, shift + 1, shift + 3});
    const double total = 1 + std::exp(1.0) + std::exp(3.0);
    CHECK(y[0] == doctest::Approx(1 / total).epsilon(1e-12));
    CHECK(y[1] == doctest::Approx(std::exp(1.0) / total).epsilon(1e-12));
    CHECK(y[2] == doctest::Approx(std::exp(3.0) / total).epsilon(1e-12));
  }
}

TEST_CASE("minus infinity gets no weight, and a row of nothing else is zero") {
  CHECK(softmax_of({-infinity, 2, -infinity}) == std::vector<double>{0, 1, 0});
  CHECK(softmax_of({-infinity, -infinity}) == std::vector<double>{0, 0});
}

TEST_CASE("the derivative is y (dy - <dy, y>), and nothing passes where y is zero") {
  const std::vector<double> y{0.25, 0.75, 0}, dy{2, -1, std::nan("")};
  std::vector<double> dx(3);
  softmax_derivative_row(y.data(), dy.data(), dx.data(), 3);
  const double inner = 0.25 * 2 - 0.75;
  CHECK(dx[0] == 0.25 * (2 - inner));
  CHECK(dx[1] == 0.75 * (-1 - inner));
  CHECK(dx[2] == 0);
}

TEST_CASE("a float row longer than a chunk adds up to one") {
  std::vector<float> x(10001, 1.0F), y(x.size());
  softmax_row(x.data(), y.data(), static_cast<i64>(x.size()));
  CHECK(y[0] == y[10000]);
  CHECK(static_cast<double>(y[0]) * 10001 == doctest::Approx(1).epsilon(1e-6));
}
