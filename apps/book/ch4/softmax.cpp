// Chapter 4. Softmax of three numbers, its Jacobian, and its backward.
// Question: how does each of the three outputs depend on each of the three inputs?
// Answer: dy_i/dx_k = y_i ([i = k] - y_k). Nudging the inputs gives the same nine numbers, and dy times this matrix is
//   what backward computes without ever making it: y (dy - <dy, y>).
#include <cmath>
#include <iostream>

#include "apps/book/measured.h"
#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

constexpr i64 n = 3;

double largest(const Tensor& x) { return std::sqrt(max(x * x).item()); }

// Row i, column k: by how much y_i grows when x_k does.
Tensor jacobian_by_formula(const Tensor& y) {
  const i64 rows = y.size(0);
  Tensor jacobian = zeros({rows, rows}, f64);
  for (i64 i = 0; i < rows; ++i) {
    for (i64 k = 0; k < rows; ++k) jacobian(i, k) = y(i) * ((i == k ? 1 : 0) - y(k));
  }
  return jacobian;
}

Tensor jacobian_by_nudges(const Tensor& x) {
  constexpr double h = 1e-5;
  Tensor jacobian = zeros({n, n}, f64);
  for (i64 k = 0; k < n; ++k) {
    Tensor more = x.clone(), less = x.clone();
    more(k) = x(k) + h;
    less(k) = x(k) - h;
    const Tensor slope = (softmax(constant(more)).value() - softmax(constant(less)).value()) * (0.5 / h);
    for (i64 i = 0; i < n; ++i) jacobian(i, k) = slope.at(i);
  }
  return jacobian;
}

}  // namespace

int main() {
  const Variable x = parameter(Tensor::of<double>({n}, {0, std::log(4.0), std::log(5.0)}));
  const Variable output = softmax(x);
  const Tensor y = output.value(), dy = Tensor::of<double>({n}, {1, 2, -1});
  std::cout << "x   " << x.value() << "\ny   " << y << "\ndy  " << dy << "\n\n";

  const Tensor by_formula = jacobian_by_formula(y), by_nudges = jacobian_by_nudges(x.value());
  std::cout << "y_i ([i = k] - y_k)\n" << by_formula << "\nby nudging x_k\n" << by_nudges << "\n\n";
  bool right = largest(by_formula - by_nudges) < 1e-9;

  backward(output, dy);
  const Tensor through_jacobian = matmul(dy.reshape({1, n}), by_formula).reshape({n});
  const double inner = dot(dy, y);
  const Tensor direct = y * (dy - full({n}, inner, f64));
  std::cout << "dx = dy times the Jacobian  " << through_jacobian << "\n<dy, y>                     " << inner
            << "\ndx = y (dy - <dy, y>)       " << direct << "\nbackward says               " << x.gradient() << '\n';
  right &= largest(through_jacobian - direct) < 1e-12 && largest(direct - x.gradient()) < 1e-12;

  const Tensor from_a_sum = y * (full({n}, 1, f64) - full({n}, sum(y).item(), f64));
  right &= largest(from_a_sum) < 1e-15;
  std::cout << "with dy = (1, 1, 1), dx is " << (largest(from_a_sum) < 1e-15 ? "zero\n" : "not zero\n");

  constexpr i64 many = 512;
  const Tensor equal = full({many}, 1.0 / many, f64), slopes = full({many}, 1, f64), large = jacobian_by_formula(equal);
  const double table = book::shortest_ms([&] { matmul(slopes.reshape({1, many}), large); });
  const double formula = book::shortest_ms([&] { equal*(slopes - full({many}, dot(slopes, equal), f64)); });
  std::cout << "measured: " << many << " numbers, dy times the Jacobian: " << large.count() << " multiplications and "
            << large.count() * bytes_of(f64) << " bytes, " << table << " ms; y (dy - <dy, y>): " << 2 * many
            << " multiplications, " << formula << " ms\n";
  return right ? 0 : 1;
}
