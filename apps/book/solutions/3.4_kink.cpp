// Chapter 3. Solution of exercise 3.4: finding a kink.
//
// Has f a derivative at x? Return true if not: if the slope on the right of x stays different from the slope on its
// left, however short the step. A function that is only steep or strongly curved has a derivative. You may evaluate f
// wherever you like; near x its slopes are at most 1e4 in size. A kink changes the slope by at least 1e-4, and kinks
// that are not at x are at least 1e-2 away.
#include <cmath>
#include <functional>

using Function = std::function<double(double)>;

// The slope on the right of x minus the slope on its left.
double jump(const Function& f, double x, double h) { return ((f(x + h) - f(x)) - (f(x) - f(x - h))) / h; }

// Where f is smooth, the jump is f'' h: it shrinks with the step. At a kink it stays.
bool has_kink(const Function& f, double x) {
  const double first = std::fabs(jump(f, x, 1e-4)), second = std::fabs(jump(f, x, 1e-5));
  return second > 0.5 * first && second > 1e-8;
}
