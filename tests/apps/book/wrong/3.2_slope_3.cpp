// Chapter 3. A wrong answer to exercise 3.2: the outer difference counts 8 times, the inner once.
// Expect: the number is -5, should be 2
#include <functional>

double my_slope(const std::function<double(double)>& f, double x, double h) {
  return ((f(x + h) - f(x - h)) - 8 * (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}
