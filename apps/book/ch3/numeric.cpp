// Chapter 3. The error of a numeric derivative, step by step.
// Question: the slope of f(x) = 1 / x at x = 2 is -1/4. How near do numeric derivatives come, and with which step?
// Answer: every stencil has a best step, between one that is too long (truncation) and one too short (rounding). Four
//   points in f64 reach 1e-13; in f32 nothing reaches 1e-7.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>

namespace {

// One addition and one division: IEEE 754 rounds them alike on every CPU.
template <class T> T f(T x) { return 1 / x; }
template <class T> T one_sided(T x, T h) { return (f(x + h) - f(x)) / h; }
template <class T> T central(T x, T h) { return (f(x + h) - f(x - h)) / (2 * h); }
template <class T> T four_points(T x, T h) {
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}

double error(double slope) { return std::fabs(slope + 0.25); }

}  // namespace

int main() {
  std::cout << std::scientific << std::setprecision(1)
            << "   step h   one-sided    central  four points   four points in f32\n";
  double best_f64 = 1, best_f32 = 1;
  for (const double h : {1e-1, 1e-2, 1e-3, 1e-5, 1e-7, 1e-9}) {
    const double f64 = error(four_points(2.0, h)), f32 = error(four_points(2.0F, static_cast<float>(h)));
    best_f64 = std::min(best_f64, f64);
    best_f32 = std::min(best_f32, f32);
    std::cout << std::setw(9) << h << std::setw(12) << error(one_sided(2.0, h)) << std::setw(11)
              << error(central(2.0, h)) << std::setw(13) << f64 << std::setw(21) << f32 << '\n';
  }
  // A numeric derivative of x^5 is wrong by exactly -4 h^4: what the derivation of the stencil says.
  const auto fifth = [](double x) { return x * x * x * x * x; };
  const double h = 0.5,
               numeric = (8 * (fifth(1 + h) - fifth(1 - h)) - (fifth(1 + 2 * h) - fifth(1 - 2 * h))) / (12 * h);
  std::cout << std::defaultfloat << std::setprecision(6) << "\nx^5 at x = 1, h = " << h << ": " << numeric
            << " in place of 5\n";

  // For f and its derivatives of size 1: rounding(h) + truncation(h) is smallest where their slopes cancel.
  const double rounding_f64 = std::numeric_limits<double>::epsilon() / 2,
               rounding_f32 = std::numeric_limits<float>::epsilon() / 2;
  std::cout << std::scientific << std::setprecision(1) << "\nrounding of one number: " << rounding_f64 << " in f64, "
            << rounding_f32 << " in f32\nbest steps in f64: one-sided " << 2 * std::sqrt(rounding_f64) << ", central "
            << std::cbrt(3 * rounding_f64) << ", four points " << std::pow(11.25 * rounding_f64, 0.2)
            << "; four points in f32 " << std::pow(11.25 * rounding_f32, 0.2) << '\n';
  const auto total = [](double u, double h) { return 1.5 * u / h + h * h * h * h / 30; };
  std::cout << "error bound of four points: " << total(rounding_f64, 1e-3) << " in f64 with h = 1e-3, "
            << total(rounding_f32, std::pow(11.25 * rounding_f32, 0.2)) << " in f32 with its best step\n";
  return best_f64 < 1e-12 && best_f32 > 1e-8 && numeric == 4.75 ? 0 : 1;
}
