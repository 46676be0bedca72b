// Chapter 4. Layer norm of four numbers: each step forward, and its backward by hand.
// Question: what does layer norm's backward do to a gradient?
// Answer: with g = dy w it takes away the mean of g and the part of g along x^, and multiplies by r. So dx adds up to
//   0. The sum of dx x^ would be 0 without eps; with it, it is as small as eps (exercise 4.6).
#include <cmath>
#include <iostream>

#include "autograd/ops.h"
#include "core/tensor_ops.h"

using namespace orrery;

namespace {

constexpr i64 n = 4;
constexpr double eps = 1e-5;

double largest(const Tensor& x) { return std::sqrt(max(x * x).item()); }
Tensor everywhere(double value) { return full({n}, value, f64); }
double mean_of(const Tensor& x) { return mean(x).item(); }

Tensor slope_by_nudges(const Tensor& x, const Variable& w, const Variable& b, const Tensor& dy) {
  constexpr double h = 1e-4;
  Tensor slope = zeros({n}, f64);
  for (i64 k = 0; k < n; ++k) {
    Tensor more = x.clone(), less = x.clone();
    more(k) = x(k) + h;
    less(k) = x(k) - h;
    const Variable y_more = layer_norm(constant(more), w, b, eps), y_less = layer_norm(constant(less), w, b, eps);
    slope(k) = (dot(dy, y_more.value()) - dot(dy, y_less.value())) / (2 * h);
  }
  return slope;
}

}  // namespace

int main() {
  std::cout.precision(4);
  const Variable x = parameter(Tensor::of<double>({n}, {0, 2, 2, 8}));
  const Variable w = parameter(Tensor::of<double>({n}, {2, 1, 1, 1})), b = parameter(zeros({n}, f64));
  const Tensor dy = Tensor::of<double>({n}, {1, 2, 0, -1});
  const Variable y = layer_norm(x, w, b, eps);

  const double mu = mean_of(x.value());
  const Tensor centred = x.value() - everywhere(mu);
  const double var = mean_of(centred * centred), r = 1 / std::sqrt(var + eps);
  const Tensor x_hat = centred * r;
  std::cout << "mu " << mu << ", var " << var << ", r " << r << "\nx^    " << x_hat << "\ny     " << y.value()
            << "\n\n";

  const Tensor g = dy * w.value();
  const double mean_g = mean_of(g), mean_gx = mean_of(g * x_hat);
  const Tensor dx = (g - everywhere(mean_g) - x_hat * mean_gx) * r;
  backward(y, dy);
  const Tensor by_nudges = slope_by_nudges(x.value(), constant(w.value()), constant(b.value()), dy);
  std::cout << "g = dy w             " << g << "\nmean(g) " << mean_g << ", mean(g x^) " << mean_gx
            << "\ndx by hand           " << dx << "\ndx by backward       " << x.gradient() << "\ndx by nudging x      "
            << by_nudges << '\n';
  std::cout << "dw = dy x^           " << w.gradient() << "\ndb = dy              " << b.gradient() << "\n\n";
  bool right = largest(dx - x.gradient()) < 1e-12 && largest(by_nudges - dx) < 1e-8;
  right &= largest(w.gradient() - dy * x_hat) < 1e-12 && same_bits(b.gradient(), dy);

  const double along_ones = sum(dx).item(), along_x_hat = dot(dx, x_hat);
  std::cout << "sum(dx) is " << (std::fabs(along_ones) < 1e-14 ? "zero" : "not zero") << "\nsum(dx x^) is "
            << along_x_hat << '\n';
  right &= std::fabs(along_ones) < 1e-14 && along_x_hat != 0 && std::fabs(along_x_hat) < eps;
  return right ? 0 : 1;
}
