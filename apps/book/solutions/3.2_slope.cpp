// Chapter 3. Solution of exercise 3.2: a numeric derivative of your own.
//
// The slope of f at x from four values of f: at x - 2h, x - h, x + h and x + 2h, such that the error falls with h^4.
// For a polynomial of degree 4 there is then no error but rounding.
#include <functional>

double my_slope(const std::function<double(double)>& f, double x, double h) {
  return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h);
}
