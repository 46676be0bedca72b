// Chapter 8. One step of the unit for one row, in numbers worked by hand, and sums down columns.
#include "autograd/ops/fused/gru_rows.h"

#include <doctest/doctest.h>

#include <array>

using namespace orrery;

TEST_CASE("with all gates 0, a step halves the state; kept is r = z = 1/2, b_n, n = 0") {
  std::array<double, 3> a{}, b{0, 0, 5};
  const double before = 3;
  double n = 7, after = 0;
  kernels::gru_row<double>(1, a.data(), b.data(), &n, &before, &after);
  CHECK(n == doctest::Approx(std::tanh(2.5)));
  CHECK(after == doctest::Approx(0.5 * std::tanh(2.5) + 1.5));
  CHECK(b == std::array<double, 3>{0.5, 0.5, 5});
}

TEST_CASE("its derivative: what goes to the gates and to the state before") {
  std::array<double, 3> b{0.5, 0.25, 2}, da{};  // r, z, b_n
  const double before = 3, n = 0.6;
  double dh = 2;
  kernels::gru_derivative_row<double>(1, &before, &n, b.data(), da.data(), &dh);
  const double dn = 2 * 0.75 * (1 - 0.36), dr = dn * 2 * 0.25, dz = 2 * 2.4 * 0.25 * 0.75;
  CHECK(da[0] == doctest::Approx(dr));
  CHECK(da[1] == doctest::Approx(dz));
  CHECK(da[2] == doctest::Approx(dn));
  CHECK(b[0] == da[0]);
  CHECK(b[1] == da[1]);
  CHECK(b[2] == doctest::Approx(dn * 0.5));
  CHECK(dh == doctest::Approx(0.5));
}

TEST_CASE("columns of a part of a matrix are added up") {
  std::vector<double> x(700 * 5);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 5);
  const Tensor sums = kernels::column_sums(kernels::Mat<const double>(x.data() + 1, 700, 3, 5));
  CHECK(sums.shape() == Shape{3});
  for (i64 i = 0; i < 3; ++i) CHECK(sums.at(i) == 700.0 * static_cast<double>(i + 1));
}
