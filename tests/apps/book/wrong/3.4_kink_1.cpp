// Chapter 3. A wrong answer to exercise 3.4: a fixed limit for the jump.
// Expect: FAILED  1000 x^2 at 0
#include <cmath>
#include <functional>

using Function = std::function<double(double)>;

bool has_kink(const Function& f, double x) {
  const double h = 1e-4, right = (f(x + h) - f(x)) / h, left = (f(x) - f(x - h)) / h;
  return std::fabs(right - left) > 0.01;
}
