// Chapter 3. A wrong answer to exercise 3.4: any jump at all counts.
// Expect: FAILED  sin x at 1
#include <cmath>
#include <functional>

using Function = std::function<double(double)>;

bool has_kink(const Function& f, double x) {
  const double h = 1e-4, right = (f(x + h) - f(x)) / h, left = (f(x) - f(x - h)) / h;
  return right != left;
}
