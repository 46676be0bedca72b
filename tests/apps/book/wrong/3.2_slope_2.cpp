// Chapter 3. A wrong answer to exercise 3.2: the outer difference is added.
// Expect: the number is 3.33333333, should be 2
#include <functional>

double my_slope(const std::function<double(double)>& f, double x, double h) {
  return (8 * (f(x + h) - f(x - h)) + (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}
